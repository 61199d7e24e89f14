#include <bit>

#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"

namespace dryfly::motif {

Task recursive_doubling_allgather(Rank& me, Communicator ranks, Blocks blocks) {
  const std::uint32_t count = ranks.size();
  if (!std::has_single_bit(count)) {
    co_await bruck_allgather(me, ranks, blocks);
    co_return;
  }
  const std::uint32_t place = ranks.place_of(me);
  for (std::uint32_t distance = 1; distance < count; distance *= 2) {
    const std::uint32_t peer = ranks.rank(place ^ distance);
    const std::uint32_t first = place & ~(distance - 1);
    co_await exchange(me, peer, blocks.between(first, first + distance), peer, ranks.tag(0));
  }
}

}  // namespace dryfly::motif
