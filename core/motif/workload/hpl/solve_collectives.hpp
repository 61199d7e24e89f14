// The collectives of the triangular solve as MPICH runs them at these sizes: a binomial tree for reductions up to 2 KiB
// and for broadcasts up to 12 KiB, Rabenseifner's algorithm for reductions beyond
// (docs/model/skeleton-hpl.md#solve). Sizes are those of FP64 elements.
//
// Left out: the time of adding, which `dryfly run --compute model` does not count either.
#pragma once

#include <cstdint>

#include "core/motif/collective/communicator.hpp"
#include "core/motif/job/task.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif::hpl {

Task reduce(Rank& me, Communicator ranks, std::uint32_t root, std::uint64_t elements);
Task broadcast_by_tree(Rank& me, Communicator ranks, std::uint32_t root, std::uint64_t elements);
Task allreduce_long(Rank& me, Communicator ranks, std::uint64_t elements);

}  // namespace dryfly::motif::hpl
