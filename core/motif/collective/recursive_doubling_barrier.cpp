#include <bit>

#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"

namespace dryfly::motif {

Task recursive_doubling_barrier(Rank& me, Communicator ranks) {
  const std::uint32_t place = ranks.place_of(me);
  const std::uint32_t half = std::bit_floor(ranks.size());
  if (place >= half) {
    const std::uint32_t peer = ranks.rank(place - half);
    co_await exchange(me, peer, Bytes{}, peer, ranks.tag(0));
    me.isend(peer, ranks.tag(2), Bytes{});
    co_return;
  }
  const bool has_guest = place + half < ranks.size();
  if (has_guest) co_await me.recv(ranks.rank(place + half), ranks.tag(0));
  for (std::uint32_t distance = 1; distance < half; distance *= 2) {
    const std::uint32_t peer = ranks.rank(place ^ distance);
    co_await exchange(me, peer, Bytes{}, peer, ranks.tag(1));
  }
  if (!has_guest) co_return;
  // A synchronous send: it is over when it has been answered.
  me.isend(ranks.rank(place + half), ranks.tag(0), Bytes{});
  co_await me.recv(ranks.rank(place + half), ranks.tag(2));
}

}  // namespace dryfly::motif
