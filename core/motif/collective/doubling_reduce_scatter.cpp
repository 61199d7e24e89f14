#include <algorithm>

#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"

namespace dryfly::motif {

// In the step with `distance`, ranks in groups of that size have combined all that is not for their own group; they
// swap that with the group beside theirs. A group that is not whole gets from those that had no partner there.
Task doubling_reduce_scatter(Rank& me, Communicator ranks, Blocks blocks) {
  const std::uint32_t count = ranks.size();
  const std::uint32_t place = ranks.place_of(me);
  const Bytes whole = blocks.between(0, count);
  if (whole.count == 0) co_return;
  for (std::uint32_t distance = 1; distance < count; distance *= 2) {
    const std::uint32_t mine = place & ~(distance - 1);
    const std::uint32_t others = mine ^ distance;
    const std::uint32_t peer = place ^ distance;
    const auto all_but = [&](std::uint32_t group) {
      return whole - blocks.between(std::min(group, count), std::min(group + distance, count));
    };
    bool got = peer < count;
    if (got) {
      const std::uint32_t rank = ranks.rank(peer);
      co_await exchange(me, rank, all_but(mine), rank, ranks.tag(0));
    }
    const std::uint32_t partners = others + distance > count && others < count ? count - others : 0;
    for (std::uint32_t half = others + distance > count ? distance / 2 : 0; half > 0; half /= 2) {
      const std::uint32_t top = place & ~(2 * half - 1);
      const std::uint32_t near = place ^ half;
      if (near > place && place < top + partners && near >= top + partners) {
        co_await me.send(ranks.rank(near), ranks.tag(1), all_but(others));
      } else if (near < place && near < top + partners && place >= top + partners) {
        co_await me.recv(ranks.rank(near), ranks.tag(1));
        got = true;
      }
    }
    if (got) co_await combine(me, all_but(others));
  }
}

}  // namespace dryfly::motif
