#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"

namespace dryfly::motif {

Task neighbour_allgather(Rank& me, Communicator ranks, Blocks blocks) {
  const std::uint32_t count = ranks.size();
  if (count % 2 == 1) {
    co_await ring_allgather(me, ranks, blocks);
    co_return;
  }
  const std::uint32_t place = ranks.place_of(me);
  const std::uint32_t pair = place & ~1U;  // the pair's first place
  const std::uint32_t partner = ranks.rank(place ^ 1);
  const std::uint32_t outside = ranks.rank(place % 2 == 0 ? (place + count - 1) % count : (place + 1) % count);
  co_await exchange(me, partner, blocks.of(place), partner, ranks.tag(0));
  // What comes from the partner comes from ever further pairs on its side, and from outside likewise.
  std::uint32_t sent = pair;
  std::uint32_t steps_out = 0;
  std::uint32_t steps_in = 0;
  for (std::uint32_t step = 1; step < count / 2; ++step) {
    const bool out = step % 2 == 1;
    const std::uint32_t far = 2 * (out ? ++steps_out : ++steps_in);
    const bool up = (place % 2 == 0) != out;
    const std::uint32_t peer = out ? outside : partner;
    co_await exchange(me, peer, blocks.between(sent, sent + 2), peer, ranks.tag(step));
    sent = up ? (pair + far) % count : (pair + count - far % count) % count;
  }
}

}  // namespace dryfly::motif
