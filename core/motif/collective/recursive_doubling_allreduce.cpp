#include <bit>

#include "core/motif/collective/collectives.hpp"
#include "core/motif/job/job.hpp"

namespace dryfly::motif {

Task recursive_doubling_allreduce(Rank& me, Communicator ranks, Bytes size) {
  const std::uint32_t place = ranks.place_of(me);
  const std::uint32_t half = std::bit_floor(ranks.size());
  const std::uint32_t further = ranks.size() - half;
  const Duration reduction = transmission_time(size, me.job().costs().copy_rate);
  // Of the first 2 * further places the even ones give to the odd ones.
  const bool folds = place < 2 * further;
  if (folds && place % 2 == 0) {
    co_await me.send(ranks.rank(place + 1), ranks.tag(0), size);
    co_await me.recv(ranks.rank(place + 1), ranks.tag(1));
    co_return;
  }
  if (folds) {
    co_await me.recv(ranks.rank(place - 1), ranks.tag(0));
    co_await me.compute(reduction);
  }
  const std::uint32_t number = folds ? place / 2 : place - further;
  for (std::uint32_t distance = 1; distance < half; distance *= 2) {
    const std::uint32_t other = number ^ distance;
    const std::uint32_t peer = ranks.rank(other < further ? 2 * other + 1 : other + further);
    co_await me.sendrecv(peer, peer, ranks.tag(2), size);
    co_await me.compute(reduction);
  }
  if (folds) co_await me.send(ranks.rank(place - 1), ranks.tag(1), size);
}

}  // namespace dryfly::motif
