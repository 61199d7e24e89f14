#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"

namespace dryfly::motif {
namespace {

// Of the numbers below `count` those with the bit.
std::uint64_t with_bit(std::uint32_t count, std::uint32_t bit) {
  const std::uint64_t whole = count / (2 * bit);
  const std::uint64_t rest = count % (2 * bit);
  return whole * bit + (rest > bit ? rest - bit : 0);
}

}  // namespace

Task bruck_alltoall(Rank& me, Communicator ranks, Bytes size) {
  const std::uint32_t count = ranks.size();
  const std::uint32_t place = ranks.place_of(me);
  std::uint32_t round = 0;
  for (std::uint32_t distance = 1; distance < count; distance *= 2, ++round) {
    const std::uint32_t to = ranks.rank((place + distance) % count);
    const std::uint32_t from = ranks.rank((place + count - distance) % count);
    co_await exchange(me, to, Bytes{size.count * with_bit(count, distance)}, from, ranks.tag(round));
  }
}

}  // namespace dryfly::motif
