#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"

namespace dryfly::motif {

Task pairwise_reduce_scatter(Rank& me, Communicator ranks, Blocks blocks) {
  const std::uint32_t count = ranks.size();
  const std::uint32_t place = ranks.place_of(me);
  for (std::uint32_t step = 1; step < count; ++step) {
    const std::uint32_t to = (place + step) % count;
    const std::uint32_t from = (place + count - step) % count;
    co_await exchange(me, ranks.rank(to), blocks.of(to), ranks.rank(from), ranks.tag(step));
    co_await combine(me, blocks.of(place));
  }
}

}  // namespace dryfly::motif
