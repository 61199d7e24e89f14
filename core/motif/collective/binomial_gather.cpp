#include <algorithm>

#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"
#include "core/motif/collective/tree.hpp"

namespace dryfly::motif {

Task binomial_gather(Rank& me, Communicator ranks, Bytes size, std::uint32_t root) {
  const std::uint32_t count = ranks.size();
  const std::uint32_t place = ranks.relative(ranks.place_of(me), root);
  const Tree tree(Shape::binomial, count, 2);
  const std::vector<std::uint32_t> children = tree.children(place);
  for (std::size_t child = children.size(); child-- > 0;) {
    co_await me.recv(ranks.relative_rank(children[child], root), ranks.tag(0));
  }
  if (place == 0) co_return;
  const std::uint32_t subtree = std::min(place & -place, count - place);
  const Bytes bytes{size.count * subtree};
  co_await me.send(ranks.relative_rank(tree.parent(place), root), ranks.tag(0), bytes);
}

}  // namespace dryfly::motif
