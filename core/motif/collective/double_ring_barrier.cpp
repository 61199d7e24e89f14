#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"

namespace dryfly::motif {

Task double_ring_barrier(Rank& me, Communicator ranks) {
  const std::uint32_t place = ranks.place_of(me);
  const std::uint32_t size = ranks.size();
  if (size == 1) co_return;
  const std::uint32_t next = ranks.rank((place + 1) % size);
  const std::uint32_t previous = ranks.rank((place + size - 1) % size);
  if (place > 0) co_await me.recv(previous, ranks.tag(0));
  me.isend(next, ranks.tag(0), Bytes{});
  if (place == 0) co_await me.recv(previous, ranks.tag(0));
  // The second time sends are synchronous: the next rank answers.
  if (place > 0) co_await me.recv(previous, ranks.tag(1));
  if (place > 0) me.isend(previous, ranks.tag(2), Bytes{});
  me.isend(next, ranks.tag(1), Bytes{});
  co_await me.recv(next, ranks.tag(2));
  if (place > 0) co_return;
  co_await me.recv(previous, ranks.tag(1));
  me.isend(previous, ranks.tag(2), Bytes{});
}

}  // namespace dryfly::motif
