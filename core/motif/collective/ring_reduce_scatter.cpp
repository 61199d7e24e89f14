#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"

namespace dryfly::motif {

Task ring_reduce_scatter(Rank& me, Communicator ranks, Blocks blocks) {
  const std::uint32_t count = ranks.size();
  const std::uint32_t place = ranks.place_of(me);
  const std::uint32_t next = ranks.rank((place + 1) % count);
  const std::uint32_t previous = ranks.rank((place + count - 1) % count);
  for (std::uint32_t step = 1; step < count; ++step) {
    co_await exchange(me, next, blocks.of((place + count - step) % count), previous, ranks.tag(0));
    co_await combine(me, blocks.of((place + 2 * count - step - 1) % count));
  }
}

}  // namespace dryfly::motif
