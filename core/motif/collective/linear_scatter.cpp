#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"

namespace dryfly::motif {

Task linear_scatter(Rank& me, Communicator ranks, Blocks blocks, std::uint32_t root, bool at_once) {
  const std::uint32_t count = ranks.size();
  const std::uint32_t place = ranks.place_of(me);
  if (place != root) {
    co_await me.recv(ranks.rank(root), ranks.tag(0));
    co_return;
  }
  for (std::uint32_t other = 0; other < count; ++other) {
    if (other == root) continue;
    const Pending sent = me.isend(ranks.rank(other), ranks.tag(0), blocks.of(other));
    if (!at_once) co_await me.wait(sent);
  }
  if (at_once) co_await me.wait_all();
}

}  // namespace dryfly::motif
