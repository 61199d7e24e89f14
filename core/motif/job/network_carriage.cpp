#include "core/motif/job/network_carriage.hpp"

#include <algorithm>

namespace dryfly::motif {

NetworkCarriage::NetworkCarriage(const Spec& spec, Engine& engine, Carrier& network)
    : wires_(Wires::read(spec)), engine_(engine), network_(network) {
  network_.connect(*this);
}

std::optional<Carried> NetworkCarriage::carry(const Load& load) {
  const std::uint32_t handle = loads_.acquire();
  loads_[handle] = load;
  network_.submit({.source = load.from,
                   .target = load.to,
                   .size = load.size,
                   .handle = handle,
                   .ordered = load.ordered && network_.takes_ordered()});
  return std::nullopt;
}

// The acknowledgement finds links as good as empty: it is short, and classes do not hold it up.
void NetworkCarriage::delivered(std::uint32_t handle, std::uint32_t switch_hops) {
  const Load load = loads_[handle];
  const std::uint64_t global_links = switch_hops > 1 ? 1 : 0;
  const std::uint64_t back_ps = load.from == load.to ? 0 : wires_.way_ps(switch_hops - global_links, global_links);
  const Instant now = engine_.now();
  listener_->carried(load, {.left = now, .arrived = now, .answered = now + Duration{back_ps + wires_.ack_ps}});
  loads_.release(handle);
}

void NetworkCarriage::failed(std::uint32_t, bool) {
  throw SpecError("faults: the network has given up a message, which this level cannot go on from");
}

}  // namespace dryfly::motif
