// Collectives of skeletons as MPI libraries run them on point-to-point messages, a file for each algorithm
// (docs/model/collectives.md). All ranks of the communicator call the same one with the same sizes, in the same order.
//
// Sizes: of a broadcast, a reduction or an all-reduction the whole vector; of the others what one rank gives to, or
// gets from, one other. `element`: data are divided between elements only. `root` is a place of the communicator.
//
// Reducing takes time on the core too: a partial result takes as long as copying it (JobCosts::copy_rate). Left out:
// all other copies that a library makes in its own memory, and what its own code costs.
#pragma once

#include "core/motif/collective/blocks.hpp"
#include "core/motif/collective/communicator.hpp"
#include "core/motif/collective/halving.hpp"
#include "core/motif/collective/tree.hpp"
#include "core/motif/job/task.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif {

// Barriers.

// Rounds of empty messages to ranks 1, 2, 4, ... places on. With `fan` k to those 1 to k - 1 times 1, k, k * k, ...
Task dissemination_barrier(Rank& me, Communicator ranks, std::uint32_t fan = 2);
// Each exchanges with the rank 1, 2, 4, ... places away; ranks beyond the largest power of two are guests of another.
Task recursive_doubling_barrier(Rank& me, Communicator ranks);
// The first rank hears of all others, then tells each.
Task linear_barrier(Rank& me, Communicator ranks);
// Up a binomial tree and down again.
Task tree_barrier(Rank& me, Communicator ranks);
// Twice around, from rank to rank.
Task double_ring_barrier(Rank& me, Communicator ranks);

// In the switches: barriers, and broadcasts, reductions and all-reductions of at most so many bytes, which all cost the
// same (core/motif/job/reductions.hpp).
inline constexpr std::uint64_t switch_bytes_max = 32;
Task in_switches(Rank& me, Communicator ranks);

// Broadcasts.

// Down a tree, in segments (0: in one): each is sent on while the next one comes.
Task tree_bcast(Rank& me, Communicator ranks, Bytes size, std::uint32_t root, Tree tree, Bytes segment);
// Half of the data goes down each side of a binary tree; then ranks of one side swap with those of the other.
Task split_binary_bcast(Rank& me, Communicator ranks, Bytes size, Bytes element, std::uint32_t root);
// Each rank gets a part of its own along a binomial tree; the parts then go around a ring.
Task scatter_ring_bcast(Rank& me, Communicator ranks, Bytes size, Bytes element, std::uint32_t root);
// As before, but the parts are gathered by recursive doubling.
Task scatter_doubling_bcast(Rank& me, Communicator ranks, Bytes size, Bytes element, std::uint32_t root);

// Reductions.

// Up a tree, in segments (0: in one).
Task tree_reduce(Rank& me, Communicator ranks, Bytes size, std::uint32_t root, Tree tree, Bytes segment);
// By halves, so that each rank has the result of a part; the parts are gathered at the root along a binomial tree.
Task rabenseifner_reduce(Rank& me, Communicator ranks, Bytes size, Bytes element, std::uint32_t root, Halves halves);

// All-reductions.

// Partial results are exchanged with the rank 1, 2, 4, ... places away; ranks beyond the largest power of two give
// theirs to one of the others before and get the result behind.
Task recursive_doubling_allreduce(Rank& me, Communicator ranks, Bytes size);
// By halves, and the parts are gathered everywhere by recursive doubling.
Task rabenseifner_allreduce(Rank& me, Communicator ranks, Bytes size, Bytes element, Halves halves);
// A part for each rank goes around a ring and is added to, in segments (0: in one); then the results go around.
Task ring_allreduce(Rank& me, Communicator ranks, Bytes size, Bytes element, Bytes segment);

// All-gathers; of blocks of different sizes too.

// From rank to rank, one block a step; in segments (0: in one), which are sent on as they come.
Task ring_allgather(Rank& me, Communicator ranks, Blocks blocks, Bytes segment = {});
// What one has is exchanged with the rank 1, 2, 4, ... places away; where that does not fit, Bruck's.
Task recursive_doubling_allgather(Rank& me, Communicator ranks, Blocks blocks);
// What one has goes 1, 2, 4, ... places back, in the last step only what is still missing there (Bruck).
Task bruck_allgather(Rank& me, Communicator ranks, Blocks blocks);
// Pairs swap, then send what they got last to the pairs beside them, left and right in turns; odd numbers take a ring.
Task neighbour_allgather(Rank& me, Communicator ranks, Blocks blocks);

// Reductions that leave a block of the result with each rank.

// By halves, the largest distance first; blocks of ranks that do not fit into a power of two belong to a neighbour.
Task halving_reduce_scatter(Rank& me, Communicator ranks, Blocks blocks);
// In each step a rank sends another its block and adds what it gets to its own.
Task pairwise_reduce_scatter(Rank& me, Communicator ranks, Blocks blocks);
// Blocks go around a ring and are added to.
Task ring_reduce_scatter(Rank& me, Communicator ranks, Blocks blocks);
// By halves, the smallest distance first; at the end a block is with the rank of mirrored bits, which sends it home,
// unless each rank has put its blocks into that order before: equal ones of 2^k ranks.
Task butterfly_reduce_scatter(Rank& me, Communicator ranks, Blocks blocks, bool mirrored_before);
// All but what is for one's own group is swapped with the rank 1, 2, 4, ... places away.
Task doubling_reduce_scatter(Rank& me, Communicator ranks, Blocks blocks);

// All-to-alls.

// In step s each rank sends its part to the one s places on and receives from the one s places back; a step begins when
// the one before is over. `size`: from one rank to one other. Steps first to last only; the whole: 1 to ranks - 1.
Task pairwise_alltoall(Rank& me, Communicator ranks, Bytes size, std::uint32_t first_step, std::uint32_t last_step);
// In step s with the rank whose place differs by exclusive or with s; where that does not fit, as above.
Task exclusive_alltoall(Rank& me, Communicator ranks, Bytes size);
// In each round all that is for ranks whose distance has the round's bit goes 1, 2, 4, ... places on (Bruck).
Task bruck_alltoall(Rank& me, Communicator ranks, Bytes size);
// All at once, or `window` partners at a time.
Task scattered_alltoall(Rank& me, Communicator ranks, Bytes size, std::uint32_t window);

// Gathers and scatters.

// Along a binomial tree; the top of a subtree handles all of it.
Task binomial_gather(Rank& me, Communicator ranks, Bytes size, std::uint32_t root);
Task binomial_scatter(Rank& me, Communicator ranks, Bytes size, std::uint32_t root);
// All send to the root.
Task linear_gather(Rank& me, Communicator ranks, Bytes size, std::uint32_t root);
// The root asks one after the other, which send `first` bytes and then the rest (0: nothing is left for the second).
Task asked_gather(Rank& me, Communicator ranks, Bytes size, std::uint32_t root, Bytes first);
// The root sends to all, one after the other or at once.
Task linear_scatter(Rank& me, Communicator ranks, Blocks blocks, std::uint32_t root, bool at_once);

}  // namespace dryfly::motif
