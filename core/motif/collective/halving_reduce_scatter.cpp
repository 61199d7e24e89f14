#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"
#include "core/motif/collective/fold.hpp"

namespace dryfly::motif {

Task halving_reduce_scatter(Rank& me, Communicator ranks, Blocks blocks) {
  const std::uint32_t place = ranks.place_of(me);
  const Bytes whole = blocks.between(0, ranks.size());
  if (whole.count == 0) co_return;
  const Fold fold(ranks.size(), true);
  const std::uint32_t number = fold.number(place);
  if (number == Fold::out) {
    co_await me.send(ranks.rank(place + 1), ranks.tag(0), whole);
    if (blocks.of(place).count > 0) co_await me.recv(ranks.rank(place + 1), ranks.tag(2));
    co_return;
  }
  if (fold.paired(place)) {
    co_await me.recv(ranks.rank(place - 1), ranks.tag(0));
    co_await combine(me, whole);
  }
  for (std::uint32_t distance = fold.numbers() / 2; distance > 0; distance /= 2) {
    const std::uint32_t mine = number & ~(distance - 1);
    const std::uint32_t others = mine ^ distance;
    const std::uint32_t peer = ranks.rank(fold.place(number ^ distance));
    const Bytes sent = blocks.between(fold.first_place(others), fold.first_place(others + distance));
    const Bytes got = blocks.between(fold.first_place(mine), fold.first_place(mine + distance));
    if (sent.count > 0 && got.count > 0) {
      co_await exchange(me, peer, sent, peer, ranks.tag(1));
    } else if (sent.count > 0) {
      co_await me.send(peer, ranks.tag(1), sent);
    } else if (got.count > 0) {
      co_await me.recv(peer, ranks.tag(1));
    }
    co_await combine(me, got);
  }
  if (fold.paired(place) && blocks.of(place - 1).count > 0) {
    co_await me.send(ranks.rank(place - 1), ranks.tag(2), blocks.of(place - 1));
  }
}

}  // namespace dryfly::motif
