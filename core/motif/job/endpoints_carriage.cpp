#include "core/motif/job/endpoints_carriage.hpp"

#include <algorithm>

namespace dryfly::motif {

EndpointsCarriage::EndpointsCarriage(const Spec& spec, const Dragonfly& topology, Bytes part)
    : wires_(Wires::read(spec)),
      part_(part),
      topology_(topology),
      queues_(topology.nic_count()),
      trouble_(Trouble::planted_in(spec, topology)) {
  if (trouble_ != nullptr) trouble_->refuse_between_switches(spec);
}

std::optional<Carried> EndpointsCarriage::carry(const Load& load) {
  if (trouble_ == nullptr) return pass(load, NoToll{});
  return trouble_->carry(load, [this](const Load& sent, Trouble::Toll& toll) { return pass(sent, toll); });
}

// A minimal way to another group is taken to begin and end with a local link: most do.
template <class Toll>
Carried EndpointsCarriage::pass(const Load& load, Toll&& toll) {
  const SwitchId from = topology_.switch_of(load.from);
  const SwitchId to = topology_.switch_of(load.to);
  std::uint64_t way_ps = 0;
  Lag out;
  if (load.from != load.to) {
    const bool one_group = topology_.group_of(from) == topology_.group_of(to);
    way_ps = one_group ? wires_.way_ps(from == to ? 0 : 1, 0) : wires_.way_ps(2, 1);
    out = toll.on(wires_.nic_port(topology_, load.from), load.ready.ps);
  }
  const std::uint64_t serial_ps = wires_.serialisation_ps(load.size);
  Queue& queue = queues_[load.to.value];
  const bool packet = load.size.count <= wires_.payload_bytes;
  std::uint64_t head_ps = load.ready.ps + out.later_ps + way_ps;
  const std::uint64_t queued_ps = head_ps;
  const bool alone = toll.alone();
  if (!alone) head_ps += (packet ? queue.packets : queue.all).left_ps(head_ps);
  Lag in;
  if (load.from != load.to)
    in = toll.on(topology_.first_port(to) + topology_.port_of(load.to), head_ps - wires_.edge_ps);
  if (!alone && packet) queue.packets.add(queued_ps, serial_ps + in.longer_ps);
  if (!alone) queue.all.add(queued_ps, serial_ps + in.longer_ps);
  const Instant arrived{head_ps + in.later_ps + serial_ps};
  return {.left = load.ready + Duration{serial_ps + out.longer_ps},
          .arrived = arrived,
          .answered = arrived + Duration{way_ps + wires_.ack_ps + toll.answer_ps(arrived.ps)}};
}

}  // namespace dryfly::motif
