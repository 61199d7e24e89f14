// Each channel has its share of the vector go around a ring of its own, a part for each rank, in as many steps as there
// are other ranks; an all-reduction goes around twice.
#include "core/motif/collective/blocks.hpp"
#include "core/motif/collective/gpu_collective.hpp"

namespace dryfly::motif {
namespace {

class Ring final : public flight::Rounds {
 public:
  // `parts`: of this channel, by position.
  Ring(const GpuShare& share, std::uint32_t channel, Blocks parts)
      : parts_(parts),
        size_(share.places.size()),
        position_(share.places.position(channel, share.place)),
        next_(share.ranks.rank(share.places.at(channel, (position_ + 1) % size_))),
        previous_(share.ranks.rank(share.places.at(channel, (position_ + size_ - 1) % size_))),
        tag_(share.tag(channel)),
        steps_(share.what == Collective::allreduce ? 2 * (size_ - 1) : size_ - 1),
        // Of a reduction the last part that comes is the own one; an all-gather begins with that.
        first_(share.what == Collective::allgather ? position_ : position_ + size_ - 1) {}

  bool round(std::uint32_t number, flight::Transfers& transfers) const override {
    if (number >= steps_) return false;
    const std::uint32_t sent = (first_ + 2 * size_ - number % size_) % size_;
    const std::uint32_t got = (sent + size_ - 1) % size_;
    transfers.push_back({.peer = previous_, .tag = tag_, .bytes = parts_.of(got).count});
    transfers.push_back(
        {.peer = next_, .tag = tag_, .bytes = parts_.of(sent).count, .is_send = true, .is_awaited = false});
    return true;
  }

 private:
  Blocks parts_;
  std::uint32_t size_;
  std::uint32_t position_;
  std::uint32_t next_;
  std::uint32_t previous_;
  std::uint32_t tag_;
  std::uint32_t steps_;
  std::uint32_t first_;
};

}  // namespace

Channels gpu_ring(const GpuShare& share) {
  const std::uint32_t channels = share.places.channels();
  const Blocks shares = Blocks::split(share.size, channels, share.element);
  Channels found;
  for (std::uint32_t channel = 0; channel < channels; ++channel) {
    const Bytes own = shares.of(channel);
    const bool is_whole = share.what == Collective::allreduce;
    const Blocks parts = is_whole ? Blocks::split(own, share.places.size(), share.element) : Blocks::equal(own);
    found.push_back(std::make_unique<Ring>(share, channel, parts));
  }
  return found;
}

}  // namespace dryfly::motif
