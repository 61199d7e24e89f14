#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"

namespace dryfly::motif {

Task linear_gather(Rank& me, Communicator ranks, Bytes size, std::uint32_t root) {
  const std::uint32_t count = ranks.size();
  const std::uint32_t place = ranks.place_of(me);
  if (place != root) {
    co_await me.send(ranks.rank(root), ranks.tag(0), size);
    co_return;
  }
  for (std::uint32_t other = 0; other < count; ++other) {
    if (other != root) me.irecv(ranks.rank(other), ranks.tag(0));
  }
  co_await me.wait_all();
}

Task asked_gather(Rank& me, Communicator ranks, Bytes size, std::uint32_t root, Bytes first) {
  const std::uint32_t count = ranks.size();
  const std::uint32_t place = ranks.place_of(me);
  const Bytes head = first.count == 0 || first >= size ? size : first;
  if (place != root) {
    co_await me.recv(ranks.rank(root), ranks.tag(0));
    co_await me.send(ranks.rank(root), ranks.tag(1), head);
    co_await me.send(ranks.rank(root), ranks.tag(2), size - head);
    co_return;
  }
  for (std::uint32_t other = 0; other < count; ++other) {
    if (other == root) continue;
    const Pending begun = me.irecv(ranks.rank(other), ranks.tag(1));
    me.isend(ranks.rank(other), ranks.tag(0), Bytes{});
    me.irecv(ranks.rank(other), ranks.tag(2));
    co_await me.wait(begun);
  }
  co_await me.wait_all();
}

}  // namespace dryfly::motif
