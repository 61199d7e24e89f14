#include <algorithm>

#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"
#include "core/motif/collective/tree.hpp"

namespace dryfly::motif {

Task tree_reduce(Rank& me, Communicator ranks, Bytes size, std::uint32_t root, Tree tree, Bytes segment) {
  // A tree whose root is not the first place stands as it is: its root hands the result on.
  const bool moved = tree.root() != 0;
  const std::uint32_t first = moved ? 0 : root;
  const std::uint32_t place = ranks.relative(ranks.place_of(me), first);
  const std::vector<std::uint32_t> children = tree.children(place);
  const std::uint32_t parent = ranks.relative_rank(tree.parent(place), first);
  const std::uint64_t length = segment.count == 0 ? std::max<std::uint64_t>(size.count, 1) : segment.count;
  for (std::uint64_t begin = 0; begin == 0 || begin < size.count; begin += length) {
    const Bytes bytes{std::min(length, size.count - begin)};
    // Small subtrees are ready first, and broadcasts serve large ones first.
    Pending coming{};
    for (std::size_t child = children.size(); child-- > 0;) {
      const Pending now =
          child + 1 == children.size() ? me.irecv(ranks.relative_rank(children[child], first), ranks.tag(0)) : coming;
      if (child > 0) coming = me.irecv(ranks.relative_rank(children[child - 1], first), ranks.tag(0));
      co_await me.wait(now);
      co_await combine(me, bytes);
    }
    if (place == tree.root()) continue;
    co_await me.send(parent, ranks.tag(0), bytes);
  }
  if (!moved || tree.root() == root) co_return;
  if (place == tree.root()) co_await me.send(ranks.rank(root), ranks.tag(1), size);
  if (place == root) co_await me.recv(ranks.rank(tree.root()), ranks.tag(1));
}

}  // namespace dryfly::motif
