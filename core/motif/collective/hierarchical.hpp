// Collectives on two levels: within nodes, and between them.
//
// Models how MPI libraries keep traffic between nodes small: a leader for each node (MPICH's SMP algorithms, Open MPI's
// HAN), or, on nodes with several NICs, one rank for each NIC that takes part of the data. Within a node messages go
// through its memory (docs/model/nodes.md). Left out: communicators whose nodes have different numbers of ranks; they
// run flat, as the caller sees to.
#pragma once

#include "core/motif/collective/collective.hpp"
#include "core/motif/collective/communicator.hpp"
#include "core/motif/job/task.hpp"

namespace dryfly::motif {

// The leader of a node reduces, or gathers, within it, takes part between leaders as the selection has it for their
// communicator, and hands the result to its node; barrier, bcast, reduce, allreduce.
Task hierarchical_collective(Rank& me, Communicator ranks, CollectiveCall call, const Selection& selection);
// A node's vector is divided among as many of its ranks as it has NICs, spread over them; each reduces its part within
// the node, runs the all-reduction with its like on other nodes, and gives the result to its node.
Task multi_nic_allreduce(Rank& me, Communicator ranks, CollectiveCall call, const Selection& selection);

}  // namespace dryfly::motif
