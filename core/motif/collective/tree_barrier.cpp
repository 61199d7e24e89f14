#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"
#include "core/motif/collective/tree.hpp"

namespace dryfly::motif {

Task tree_barrier(Rank& me, Communicator ranks) {
  const std::uint32_t place = ranks.place_of(me);
  const Tree tree(Shape::binomial, ranks.size(), 2);
  const std::vector<std::uint32_t> children = tree.children(place);
  for (std::size_t child = children.size(); child-- > 0;) {
    co_await me.recv(ranks.rank(children[child]), ranks.tag(0));
  }
  if (place > 0) {
    me.isend(ranks.rank(tree.parent(place)), ranks.tag(0), Bytes{});
    co_await me.recv(ranks.rank(tree.parent(place)), ranks.tag(1));
  }
  for (const std::uint32_t child : children) me.isend(ranks.rank(child), ranks.tag(1), Bytes{});
}

}  // namespace dryfly::motif
