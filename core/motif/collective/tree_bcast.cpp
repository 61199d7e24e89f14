#include <algorithm>

#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"
#include "core/motif/collective/tree.hpp"

namespace dryfly::motif {

Task tree_bcast(Rank& me, Communicator ranks, Bytes size, std::uint32_t root, Tree tree, Bytes segment) {
  const std::uint32_t place = ranks.relative(ranks.place_of(me), root);
  const std::vector<std::uint32_t> children = tree.children(place);
  const std::uint32_t parent = ranks.relative_rank(tree.parent(place), root);
  const std::uint64_t length = segment.count == 0 ? std::max<std::uint64_t>(size.count, 1) : segment.count;
  const std::uint64_t segments = std::max<std::uint64_t>((size.count + length - 1) / length, 1);
  // MPICH's sends are blocking ones, and only MPICH has this shape; Open MPI begins all of a segment's.
  const bool one_by_one = tree.shape() == Shape::binomial;
  Pending coming{};
  if (place > 0) coming = me.irecv(parent, ranks.tag(0));
  for (std::uint64_t part = 0; part < segments; ++part) {
    const Pending now = coming;
    if (place > 0 && part + 1 < segments) coming = me.irecv(parent, ranks.tag(0));
    if (place > 0) co_await me.wait(now);
    const Bytes bytes{std::min(length, size.count - part * length)};
    Pending last{};
    for (const std::uint32_t child : children) {
      last = me.isend(ranks.relative_rank(child, root), ranks.tag(0), bytes);
      if (one_by_one) co_await me.wait(last);
    }
    // They leave one behind the other, so that all are gone with the last one.
    if (!children.empty()) co_await me.wait(last);
  }
}

}  // namespace dryfly::motif
