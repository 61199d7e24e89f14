#include "core/motif/job/endpoints_carriage.hpp"

#include <algorithm>

namespace dryfly::motif {

EndpointsCarriage::EndpointsCarriage(const Spec& spec, const Dragonfly& topology, Bytes part)
    : wires_(Wires::read(spec)), part_(part), topology_(topology), queues_(topology.nic_count()) {}

// A minimal way to another group is taken to begin and end with a local link: most do.
std::optional<Carried> EndpointsCarriage::carry(const Load& load) {
  const SwitchId from = topology_.switch_of(load.from);
  const SwitchId to = topology_.switch_of(load.to);
  std::uint64_t way_ps = 0;
  if (load.from != load.to) {
    const bool one_group = topology_.group_of(from) == topology_.group_of(to);
    way_ps = one_group ? wires_.way_ps(from == to ? 0 : 1, 0) : wires_.way_ps(2, 1);
  }
  const std::uint64_t serial_ps = wires_.serialisation_ps(load.size);
  Queue& queue = queues_[load.to.value];
  const bool packet = load.size.count <= wires_.payload_bytes;
  const std::uint64_t head_ps = load.ready.ps + way_ps;
  const std::uint64_t arrived_ps = head_ps + (packet ? queue.packets : queue.all).left_ps(head_ps) + serial_ps;
  if (packet) queue.packets.add(head_ps, serial_ps);
  queue.all.add(head_ps, serial_ps);
  return Carried{.left = load.ready + Duration{serial_ps},
                 .arrived = Instant{arrived_ps},
                 .answered = Instant{arrived_ps + way_ps + wires_.ack_ps}};
}

}  // namespace dryfly::motif
