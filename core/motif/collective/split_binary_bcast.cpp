#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"
#include "core/motif/collective/tree.hpp"

namespace dryfly::motif {

Task split_binary_bcast(Rank& me, Communicator ranks, Bytes size, Bytes element, std::uint32_t root) {
  const std::uint32_t count = ranks.size();
  const Blocks halves = Blocks::split(size, 2, element);
  const std::uint32_t place = ranks.relative(ranks.place_of(me), root);
  if (halves.of(1).count == 0) {
    co_await tree_bcast(me, ranks, size, root, Tree(Shape::chain, count, 1), Bytes{});
    co_return;
  }
  const Tree tree(Shape::bushy, count, 2);
  const std::vector<std::uint32_t> children = tree.children(place);
  // Odd places are in the left subtree, which gets the first half.
  const std::uint32_t side = place % 2 == 1 ? 0 : 1;
  if (place > 0) co_await me.recv(ranks.relative_rank(tree.parent(place), root), ranks.tag(0));
  for (std::uint32_t child = 0; child < children.size(); ++child) {
    const Bytes half = halves.of(place == 0 ? child : side);
    co_await me.send(ranks.relative_rank(children[child], root), ranks.tag(0), half);
  }
  // Each exchanges halves with its like in the other subtree; of an even number the last one has none and asks the
  // root.
  const bool even = count % 2 == 0;
  if (even && place == 0) co_await me.send(ranks.relative_rank(count - 1, root), ranks.tag(1), halves.of(1));
  if (even && place == count - 1) co_await me.recv(ranks.relative_rank(0, root), ranks.tag(1));
  if (place == 0 || (even && place == count - 1)) co_return;
  const std::uint32_t peer = ranks.relative_rank(side == 0 ? place + 1 : place - 1, root);
  co_await exchange(me, peer, halves.of(side), peer, ranks.tag(1));
}

}  // namespace dryfly::motif
