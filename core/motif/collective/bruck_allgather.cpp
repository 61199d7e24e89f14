#include <algorithm>

#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"

namespace dryfly::motif {

Task bruck_allgather(Rank& me, Communicator ranks, Blocks blocks) {
  const std::uint32_t count = ranks.size();
  const std::uint32_t place = ranks.place_of(me);
  std::uint32_t round = 0;
  for (std::uint32_t distance = 1; distance < count; distance *= 2, ++round) {
    const std::uint32_t to = ranks.rank((place + count - distance) % count);
    const std::uint32_t from = ranks.rank((place + distance) % count);
    const Bytes sent = blocks.around(place, std::min(distance, count - distance), count);
    co_await exchange(me, to, sent, from, ranks.tag(round));
  }
}

}  // namespace dryfly::motif
