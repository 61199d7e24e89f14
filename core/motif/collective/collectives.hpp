// Collectives of skeletons as MPI libraries run them on point-to-point messages, a file for each algorithm. All ranks
// of the communicator call the same one with the same sizes, in the same order.
//
// Reducing takes time on the core too: `size` bytes at the rate of JobCosts::copy_rate for each partial result.
#pragma once

#include "core/motif/collective/communicator.hpp"
#include "core/motif/job/task.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif {

// Rounds of empty messages to ranks 1, 2, 4, ... places on (dissemination).
Task dissemination_barrier(Rank& me, Communicator ranks);
// Partial results are exchanged with the rank 1, 2, 4, ... places away; ranks beyond the largest power of two give
// theirs to one of the others before and get the result behind.
Task recursive_doubling_allreduce(Rank& me, Communicator ranks, Bytes size);
// In step s each rank sends its part to the one s places on and receives from the one s places back; a step begins when
// the one before is over. `size`: from one rank to one other. Steps first to last only; the whole: 1 to ranks - 1.
Task pairwise_alltoall(Rank& me, Communicator ranks, Bytes size, std::uint32_t first_step, std::uint32_t last_step);

}  // namespace dryfly::motif
