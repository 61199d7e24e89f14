// Collectives that a schedule names: which algorithm stands for each. Where a library decides, the one that it would
// choose. Else one for each kind, whatever the size: dissemination for barriers, binomial trees where there is a root,
// recursive doubling for allreduce, a ring for allgather, pairwise exchange for the others.
#pragma once

#include "core/motif/collective/communicator.hpp"
#include "core/motif/collective/selection.hpp"
#include "core/motif/job/task.hpp"
#include "core/motif/schedule/schedule.hpp"

namespace dryfly::motif {

// `size` is what MPI calls count times the size of the datatype: of the whole vector in bcast, reduce, allreduce; from
// one rank to one other in alltoall; of one rank's part in allgather, gather, scatter and reduce_scatter. `library` may
// be null, and has to outlive the task.
Task run_verb(Rank& me, Verb verb, Communicator ranks, std::uint32_t root, Bytes size, const Selection* library);

}  // namespace dryfly::motif
