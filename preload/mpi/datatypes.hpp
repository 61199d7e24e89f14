// Which of the program's datatypes are not contiguous, so that the MPI library has to put messages of them together
// from blocks and take them apart, which costs time (docs/model/software.md#datatypes). A type is looked at when it is
// committed.
//
// Left out: the pair types of MINLOC and MAXLOC, and blocks that lie side by side in another order.
#pragma once

#include <cstdint>

#include "preload/mpi/mpi_calls.hpp"

namespace dryfly::preload {

// Behind a call that has made the type, and in front of one that frees it.
void note_datatype(Call call, const long* words);
void forget_datatype(Call call, const long* words);
// The mean length of a block in bytes; 0: the type is contiguous.
std::uint32_t block_of(long datatype);

}  // namespace dryfly::preload
