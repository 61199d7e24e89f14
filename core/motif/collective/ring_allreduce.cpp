#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/exchange.hpp"

namespace dryfly::motif {
namespace {

// In how many rounds the blocks are reduced, each round a part of every block.
std::uint32_t rounds_of(std::uint64_t elements, std::uint32_t count, std::uint64_t segment_elements) {
  if (segment_elements == 0 || segment_elements >= elements || elements < count * segment_elements) return 1;
  const std::uint64_t round = count * segment_elements;
  const std::uint64_t rest = elements % round;
  return static_cast<std::uint32_t>(elements / round + (rest >= count && rest > round / 2 ? 1 : 0));
}

}  // namespace

Task ring_allreduce(Rank& me, Communicator ranks, Bytes size, Bytes element, Bytes segment) {
  const std::uint32_t count = ranks.size();
  const std::uint64_t unit = std::max<std::uint64_t>(element.count, 1);
  if (size.count / unit < count) {
    co_await recursive_doubling_allreduce(me, ranks, size);
    co_return;
  }
  const std::uint32_t place = ranks.place_of(me);
  const Blocks blocks = Blocks::split(size, count, element);
  const std::uint32_t next = ranks.rank((place + 1) % count);
  const std::uint32_t previous = ranks.rank((place + count - 1) % count);
  const std::uint32_t rounds = rounds_of(size.count / unit, count, segment.count / unit);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (std::uint32_t step = 0; step + 1 < count; ++step) {
      const Bytes sent = Blocks::split(blocks.of((place + count - step) % count), rounds, element).of(round);
      const Bytes got = Blocks::split(blocks.of((place + count - step - 1) % count), rounds, element).of(round);
      co_await exchange(me, next, sent, previous, ranks.tag(0));
      co_await combine(me, got);
    }
  }
  for (std::uint32_t step = 0; step + 1 < count; ++step) {
    co_await exchange(me, next, blocks.of((place + 1 + count - step) % count), previous, ranks.tag(1));
  }
}

}  // namespace dryfly::motif
