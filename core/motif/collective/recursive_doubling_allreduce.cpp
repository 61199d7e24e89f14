#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"
#include "core/motif/collective/fold.hpp"

namespace dryfly::motif {

Task recursive_doubling_allreduce(Rank& me, Communicator ranks, Bytes size) {
  const std::uint32_t place = ranks.place_of(me);
  const Fold fold(ranks.size(), true);
  const std::uint32_t number = fold.number(place);
  if (number == Fold::out) {
    co_await me.send(ranks.rank(place + 1), ranks.tag(0), size);
    co_await me.recv(ranks.rank(place + 1), ranks.tag(1));
    co_return;
  }
  if (fold.paired(place)) {
    co_await me.recv(ranks.rank(place - 1), ranks.tag(0));
    co_await combine(me, size);
  }
  for (std::uint32_t distance = 1; distance < fold.numbers(); distance *= 2) {
    const std::uint32_t peer = ranks.rank(fold.place(number ^ distance));
    co_await exchange(me, peer, size, peer, ranks.tag(2));
    co_await combine(me, size);
  }
  if (fold.paired(place)) co_await me.send(ranks.rank(place - 1), ranks.tag(1), size);
}

}  // namespace dryfly::motif
