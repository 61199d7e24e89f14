#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"

namespace dryfly::motif {

Task dissemination_barrier(Rank& me, Communicator ranks, std::uint32_t fan) {
  const std::uint32_t place = ranks.place_of(me);
  const std::uint32_t size = ranks.size();
  std::uint32_t round = 0;
  for (std::uint64_t unit = 1; unit < size; unit *= fan, ++round) {
    Pending last{};
    for (std::uint64_t distance = unit; distance < unit * fan && distance < size; distance += unit) {
      last = me.irecv(ranks.rank(static_cast<std::uint32_t>((place + size - distance) % size)), ranks.tag(round));
      me.isend(ranks.rank(static_cast<std::uint32_t>((place + distance) % size)), ranks.tag(round), Bytes{});
    }
    if (fan == 2) co_await me.wait(last);
    if (fan != 2) co_await me.wait_all();
  }
}

}  // namespace dryfly::motif
