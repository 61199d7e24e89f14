#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"

namespace dryfly::motif {

Task linear_barrier(Rank& me, Communicator ranks) {
  const std::uint32_t size = ranks.size();
  if (ranks.place_of(me) > 0) {
    me.isend(ranks.rank(0), ranks.tag(0), Bytes{});
    co_await me.recv(ranks.rank(0), ranks.tag(1));
    co_return;
  }
  for (std::uint32_t other = 1; other < size; ++other) me.irecv(ranks.rank(other), ranks.tag(0));
  co_await me.wait_all();
  for (std::uint32_t other = 1; other < size; ++other) me.isend(ranks.rank(other), ranks.tag(1), Bytes{});
}

}  // namespace dryfly::motif
