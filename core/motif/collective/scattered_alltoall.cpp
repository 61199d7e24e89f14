#include <algorithm>

#include "core/motif/collective/collectives.hpp"

namespace dryfly::motif {

Task scattered_alltoall(Rank& me, Communicator ranks, Bytes size, std::uint32_t window) {
  const std::uint32_t count = ranks.size();
  const std::uint32_t place = ranks.place_of(me);
  const std::uint32_t batch = window == 0 ? count : window;
  for (std::uint32_t first = 1; first < count; first += batch) {
    const std::uint32_t end = std::min(count, first + batch);
    for (std::uint32_t step = first; step < end; ++step) {
      me.irecv(ranks.rank((place + step) % count), ranks.tag(0));
    }
    for (std::uint32_t step = first; step < end; ++step) {
      me.isend(ranks.rank((place + count - step) % count), ranks.tag(0), size);
    }
    co_await me.wait_all();
  }
}

}  // namespace dryfly::motif
