#include <algorithm>

#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"
#include "core/motif/collective/tree.hpp"

namespace dryfly::motif {

Task binomial_scatter(Rank& me, Communicator ranks, Bytes size, std::uint32_t root) {
  const std::uint32_t count = ranks.size();
  const std::uint32_t place = ranks.relative(ranks.place_of(me), root);
  const Tree tree(Shape::binomial, count, 2);
  if (place > 0) co_await me.recv(ranks.relative_rank(tree.parent(place), root), ranks.tag(0));
  for (const std::uint32_t child : tree.children(place)) {
    const Bytes bytes{size.count * std::min(child & -child, count - child)};
    co_await me.send(ranks.relative_rank(child, root), ranks.tag(0), bytes);
  }
}

}  // namespace dryfly::motif
