#include <bit>

#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"

namespace dryfly::motif {

Task exclusive_alltoall(Rank& me, Communicator ranks, Bytes size) {
  const std::uint32_t count = ranks.size();
  if (!std::has_single_bit(count)) {
    co_await pairwise_alltoall(me, ranks, size, 1, count - 1);
    co_return;
  }
  const std::uint32_t place = ranks.place_of(me);
  for (std::uint32_t step = 1; step < count; ++step) {
    const std::uint32_t peer = ranks.rank(place ^ step);
    co_await exchange(me, peer, size, peer, ranks.tag(step));
  }
}

}  // namespace dryfly::motif
