#include <algorithm>

#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"

namespace dryfly::motif {

Task ring_allgather(Rank& me, Communicator ranks, Blocks blocks, Bytes segment) {
  const std::uint32_t count = ranks.size();
  const std::uint32_t place = ranks.place_of(me);
  const std::uint32_t next = ranks.rank((place + 1) % count);
  const std::uint32_t previous = ranks.rank((place + count - 1) % count);
  const auto pieces = [&](std::uint32_t block) {
    const std::uint64_t bytes = blocks.of(block).count;
    return segment.count == 0 || bytes == 0 ? 1 : (bytes + segment.count - 1) / segment.count;
  };
  for (std::uint32_t step = 0; step + 1 < count; ++step) {
    const std::uint32_t sent = (place + count - step) % count;
    const std::uint32_t got = (place + 2 * count - step - 1) % count;
    for (std::uint64_t piece = 0; piece < std::max(pieces(sent), pieces(got)); ++piece) {
      const std::uint64_t left = blocks.of(sent).count - std::min(blocks.of(sent).count, piece * segment.count);
      const Bytes bytes{segment.count == 0 ? left : std::min(left, segment.count)};
      if (piece >= pieces(got)) {
        co_await me.send(next, ranks.tag(0), bytes);
      } else if (piece >= pieces(sent)) {
        co_await me.recv(previous, ranks.tag(0));
      } else {
        co_await exchange(me, next, bytes, previous, ranks.tag(0));
      }
    }
  }
}

}  // namespace dryfly::motif
