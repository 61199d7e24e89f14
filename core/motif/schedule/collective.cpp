#include "core/motif/schedule/collective.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/tree.hpp"

namespace dryfly::motif {
namespace {

Task fence(Rank& me, Communicator ranks) {
  co_await me.wait_all();
  co_await dissemination_barrier(me, ranks);
}

// A schedule does not say of which type the data are, so reductions are of 8 bytes each, or of
// the largest power of two that divides their size.
CollectiveCall call_of(Verb verb, std::uint32_t root, Bytes size) {
  constexpr std::array<std::pair<Verb, Collective>, 9> names{{
      {Verb::barrier, Collective::barrier},
      {Verb::bcast, Collective::bcast},
      {Verb::reduce, Collective::reduce},
      {Verb::allreduce, Collective::allreduce},
      {Verb::alltoall, Collective::alltoall},
      {Verb::allgather, Collective::allgather},
      {Verb::reduce_scatter, Collective::reduce_scatter_block},
      {Verb::gather, Collective::gather},
      {Verb::scatter, Collective::scatter},
  }};
  const auto* const found =
      std::find_if(names.begin(), names.end(), [&](const auto& one) { return one.first == verb; });
  DRYFLY_CHECK(found != names.end());
  const bool reduces = verb == Verb::reduce || verb == Verb::allreduce || verb == Verb::reduce_scatter;
  std::uint64_t element = reduces ? 8 : 1;
  while (size.count % element != 0) element /= 2;
  return {.what = found->second, .size = size, .element = Bytes{element}, .root = root};
}

}  // namespace

Task run_verb(Rank& me, Verb verb, Communicator ranks, std::uint32_t root, Bytes size, const Selection* library) {
  if (library != nullptr && verb != Verb::fence) {
    return run_collective(me, std::move(ranks), call_of(verb, root, size), *library);
  }
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
