#include "core/motif/collective/collectives.hpp"

namespace dryfly::motif {

Task dissemination_barrier(Rank& me, Communicator ranks) {
  const std::uint32_t place = ranks.place_of(me);
  const std::uint32_t size = ranks.size();
  std::uint32_t round = 0;
  for (std::uint64_t distance = 1; distance < size; distance *= 2, ++round) {
    const auto to = static_cast<std::uint32_t>((place + distance) % size);
    const auto from = static_cast<std::uint32_t>((place + size - distance) % size);
    co_await me.sendrecv(ranks.rank(to), ranks.rank(from), ranks.tag(round), Bytes{});
  }
}

}  // namespace dryfly::motif
