#include "core/motif/schedule/collective.hpp"

#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/tree.hpp"

namespace dryfly::motif {
namespace {

Task fence(Rank& me, Communicator ranks) {
  co_await me.wait_all();
  co_await dissemination_barrier(me, ranks);
}

}  // namespace

Task run_verb(Rank& me, Verb verb, Communicator ranks, std::uint32_t root, Bytes size) {
  const Tree tree(Shape::binomial, ranks.size(), 2);
  switch (verb) {
    case Verb::barrier:
      return dissemination_barrier(me, ranks);
    case Verb::fence:
      return fence(me, ranks);
    case Verb::bcast:
      return tree_bcast(me, ranks, size, root, tree, Bytes{});
    case Verb::reduce:
      return tree_reduce(me, ranks, size, root, tree, Bytes{});
    case Verb::scatter:
      return binomial_scatter(me, ranks, size, root);
    case Verb::gather:
      return binomial_gather(me, ranks, size, root);
    case Verb::allreduce:
      return recursive_doubling_allreduce(me, ranks, size);
    case Verb::alltoall:
      return pairwise_alltoall(me, ranks, size, 1, ranks.size() - 1);
    case Verb::allgather:
      return ring_allgather(me, ranks, Blocks::equal(size));
    case Verb::reduce_scatter:
      return pairwise_reduce_scatter(me, ranks, Blocks::equal(size));
    default:
      DRYFLY_UNREACHABLE("a collective");
  }
}

}  // namespace dryfly::motif
