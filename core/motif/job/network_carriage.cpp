#include "core/motif/job/network_carriage.hpp"

#include <algorithm>

#include "core/motif/job/trouble.hpp"
#include "core/network/fabric/fabric_spec.hpp"

namespace dryfly::motif {

NetworkCarriage::NetworkCarriage(const Spec& spec, const Dragonfly& topology, Engine& engine, Carrier& network)
    : spec_(spec),
      wires_(Wires::read(spec)),
      topology_(topology),
      engine_(engine),
      network_(network),
      nic_spec_(nic_spec(spec)),
      nic_sockets_(nic_sockets(spec)),
      counters_(engine),
      paths_(nic_spec_, counters_),
      lanes_(topology.nic_count(), not_asked) {
  network_.connect(*this);
  if (paths_.holds_up()) network_.attach(paths_);
}

std::uint32_t NetworkCarriage::lane_of(NicId nic) {
  std::uint32_t& lane = lanes_[nic.value];
  if (lane != not_asked) return lane;
  const std::uint32_t index = topology_.index_in_node(nic);
  const std::uint32_t socket = index < nic_sockets_.size() ? nic_sockets_[index] : 0;
  lane = paths_.place(nic, topology_.node_of(nic), {.socket = socket, .nic_socket = socket}).lane;
  return lane;
}

std::optional<Carried> NetworkCarriage::carry(const Load& load) {
  const std::uint32_t handle = loads_.acquire();
  loads_[handle] = load;
  lane_of(load.from);
  lane_of(load.to);
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
  const Instant there = now + paths_.arrival_lag(lane_of(load.to), now);
  listener_->carried(load, {.left = now, .arrived = there, .answered = there + Duration{back_ps + wires_.ack_ps}});
  loads_.release(handle);
}

void NetworkCarriage::failed(std::uint32_t handle, bool) {
  const fabric::Wiring wiring(topology_, fabric::FabricSpec::read(spec_), spec_);
  refuse_given_up(fabric::FaultPlan::read(spec_, topology_, wiring), wiring, loads_[handle], engine_.now());
}

}  // namespace dryfly::motif
