#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"
#include "core/motif/collective/fold.hpp"

namespace dryfly::motif {
namespace {

std::uint32_t mirrored(std::uint32_t number, std::uint32_t numbers) {
  std::uint32_t result = 0;
  for (std::uint32_t bit = 1; bit < numbers; bit *= 2, number /= 2) result = result * 2 + number % 2;
  return result;
}

}  // namespace

Task butterfly_reduce_scatter(Rank& me, Communicator ranks, Blocks blocks, bool mirrored_before) {
  const std::uint32_t place = ranks.place_of(me);
  const Bytes whole = blocks.between(0, ranks.size());
  const Fold fold(ranks.size(), true);
  const std::uint32_t number = fold.number(place);
  if (number == Fold::out) {
    co_await me.send(ranks.rank(place + 1), ranks.tag(0), whole);
    co_await me.recv(ranks.rank(fold.place(mirrored((place + 1) / 2, fold.numbers()))), ranks.tag(2));
    co_return;
  }
  if (fold.paired(place)) {
    co_await me.recv(ranks.rank(place - 1), ranks.tag(0));
    co_await combine(me, whole);
  }
  std::uint32_t first = 0;
  std::uint32_t length = fold.numbers();
  for (std::uint32_t distance = 1; distance < fold.numbers(); distance *= 2) {
    length /= 2;
    const std::uint32_t kept = first + (number & distance ? length : 0);
    const std::uint32_t given = first + (number & distance ? 0 : length);
    const std::uint32_t peer = ranks.rank(fold.place(number ^ distance));
    const Bytes sent = blocks.between(fold.first_place(given), fold.first_place(given + length));
    co_await exchange(me, peer, sent, peer, ranks.tag(1));
    co_await combine(me, blocks.between(fold.first_place(kept), fold.first_place(kept + length)));
    first = kept;
  }
  if (mirrored_before) co_return;
  // The block that is left is that of the number with these bits in the opposite order, and of who stayed out with it.
  const std::uint32_t owner = mirrored(number, fold.numbers());
  const std::uint32_t peer = fold.place(owner);
  if (fold.paired(peer)) co_await me.send(ranks.rank(peer - 1), ranks.tag(2), blocks.of(peer - 1));
  if (owner != number) co_await exchange(me, ranks.rank(peer), blocks.of(peer), ranks.rank(peer), ranks.tag(3));
}

}  // namespace dryfly::motif
