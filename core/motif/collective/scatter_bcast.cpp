// Broadcasts that scatter the data along a binomial tree and gather them everywhere.
#include <bit>

#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"
#include "core/motif/collective/tree.hpp"

namespace dryfly::motif {
namespace {

// Who has the place at the top of a subtree gets the parts of all of it. Nobody sends nothing.
Task scatter_parts(Rank& me, Communicator ranks, Blocks parts, std::uint32_t root) {
  const std::uint32_t count = ranks.size();
  const std::uint32_t place = ranks.relative(ranks.place_of(me), root);
  const Tree tree(Shape::binomial, count, 2);
  if (place > 0 && parts.between(place, count).count > 0) {
    co_await me.recv(ranks.relative_rank(tree.parent(place), root), ranks.tag(0));
  }
  std::uint32_t end = place == 0 ? count : std::min(count, place + (place & -place));
  for (const std::uint32_t child : tree.children(place)) {
    const Bytes bytes = parts.between(child, end);
    end = child;
    if (bytes.count == 0) continue;
    co_await me.send(ranks.relative_rank(child, root), ranks.tag(0), bytes);
  }
}

// With 2^k places, or what is left of them, on either side: those of a side that has no partner on the other get that
// side's parts from those that have one.
Task double_parts(Rank& me, Communicator ranks, Blocks parts, std::uint32_t root) {
  const std::uint32_t count = ranks.size();
  const std::uint32_t place = ranks.relative(ranks.place_of(me), root);
  for (std::uint32_t distance = 1; distance < count; distance *= 2) {
    const std::uint32_t mine = place & ~(distance - 1);
    const std::uint32_t others = mine ^ distance;
    const std::uint32_t peer = place ^ distance;
    const Bytes theirs = parts.between(std::min(others, count), std::min(others + distance, count));
    if (peer < count) {
      const Bytes sent = parts.between(mine, std::min(mine + distance, count));
      const std::uint32_t rank = ranks.relative_rank(peer, root);
      co_await exchange(me, rank, sent, rank, ranks.tag(1));
    }
    if (others + distance <= count) continue;
    const std::uint32_t partners = others < count ? count - others : 0;
    for (std::uint32_t half = distance / 2; half > 0; half /= 2) {
      const std::uint32_t top = place & ~(2 * half - 1);
      const std::uint32_t near = place ^ half;
      if (near > place && place < top + partners && near >= top + partners) {
        co_await me.send(ranks.relative_rank(near, root), ranks.tag(2), theirs);
      } else if (near < place && near < top + partners && place >= top + partners) {
        co_await me.recv(ranks.relative_rank(near, root), ranks.tag(2));
      }
    }
  }
}

}  // namespace

Task scatter_ring_bcast(Rank& me, Communicator ranks, Bytes size, Bytes element, std::uint32_t root) {
  const std::uint32_t count = ranks.size();
  const Blocks parts = Blocks::rounded_up(size, count, element);
  co_await scatter_parts(me, ranks, parts, root);
  const std::uint32_t place = ranks.relative(ranks.place_of(me), root);
  const std::uint32_t next = ranks.relative_rank((place + 1) % count, root);
  const std::uint32_t previous = ranks.relative_rank((place + count - 1) % count, root);
  for (std::uint32_t step = 0; step + 1 < count; ++step) {
    co_await exchange(me, next, parts.of((place + count - step) % count), previous, ranks.tag(1));
  }
}

Task scatter_doubling_bcast(Rank& me, Communicator ranks, Bytes size, Bytes element, std::uint32_t root) {
  const Blocks parts = Blocks::rounded_up(size, ranks.size(), element);
  co_await scatter_parts(me, ranks, parts, root);
  co_await double_parts(me, ranks, parts, root);
}

}  // namespace dryfly::motif
