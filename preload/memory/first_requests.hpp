// MPICH makes its requests by the thousand: when the few that it has from the start are in use, it allocates a block of
// 1,024, 2.3 MiB, and writes to every page of it. Here that happens at the end of MPI_Init, where all ranks do it at
// the same time and no virtual time passes. The block is then the same in all ranks whose memory is laid out alike
// (launch/spawn.cpp), and is kept once for all of them where they are many (rank/common_pages.hpp).
//
// The requests it takes are MPI's generalized ones, which are complete as soon as their owner says so. Where the block
// lies is seen from the list of mappings before and after.
#pragma once

#include "rank/common_pages.hpp"

namespace dryfly::preload {

// The new block; none if there is none, or if something else was mapped meanwhile.
rank::CommonPages make_first_requests();

}  // namespace dryfly::preload
