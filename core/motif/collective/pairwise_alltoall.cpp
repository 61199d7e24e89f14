#include "core/motif/collective/collectives.hpp"

namespace dryfly::motif {

Task pairwise_alltoall(Rank& me, Communicator ranks, Bytes size, std::uint32_t first_step, std::uint32_t last_step) {
  const std::uint32_t place = ranks.place_of(me);
  const std::uint32_t count = ranks.size();
  for (std::uint32_t step = first_step; step <= last_step; ++step) {
    const std::uint32_t to = place + step < count ? place + step : place + step - count;
    const std::uint32_t from = place >= step ? place - step : place + count - step;
    co_await me.sendrecv(ranks.rank(to), ranks.rank(from), ranks.tag(step), size);
  }
}

}  // namespace dryfly::motif
