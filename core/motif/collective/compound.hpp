// Collectives that are others, one behind the other, each by the algorithm that the selection has for it; as Open MPI's
// algorithms "nonoverlapping", "linear" and "default" are.
#pragma once

#include "core/motif/collective/collective.hpp"

namespace dryfly::motif {

Task reduce_then_bcast(Rank& me, Communicator ranks, CollectiveCall call, const Selection& selection);
Task reduce_then_scatter(Rank& me, Communicator ranks, CollectiveCall call, const Selection& selection);
Task gather_then_bcast(Rank& me, Communicator ranks, CollectiveCall call, const Selection& selection);

}  // namespace dryfly::motif
