#include "core/motif/job/bus_carriage.hpp"

#include <algorithm>
#include <utility>

#include "core/motif/job/wires.hpp"
#include "core/nic/nic_spec.hpp"
#include "core/spec/fields.hpp"
#include "core/unit/fetch.hpp"

namespace dryfly::motif {

bool BusCarriage::is_in(const Spec& spec) { return spec.has(fields::node_pcie_rate_bytes_per_s); }

BusCarriage::BusCarriage(const Spec& spec, const Dragonfly& topology, std::unique_ptr<Carriage> inner)
    : inner_(std::move(inner)),
      topology_(topology),
      rate_{spec.number(fields::node_pcie_rate_bytes_per_s)},
      packet_{Wires::read(spec).payload_bytes},
      part_ps_(transmission_time(inner_->part(), rate_).ps),
      packet_ps_(transmission_time(packet_, rate_).ps),
      nic_sockets_(nic_sockets(spec)) {
  for (const std::uint32_t socket : nic_sockets_) sockets_ = std::max(sockets_, socket + 1);
  buses_.resize(std::size_t{topology.node_count()} * sockets_);
}

BusCarriage::Bus& BusCarriage::bus_of(NicId nic) {
  const NodeId node = topology_.node_of(nic);
  const std::uint32_t index = nic.value - topology_.nic_of(node, 0).value;
  const std::uint32_t socket = index < nic_sockets_.size() ? nic_sockets_[index] : 0;
  return buses_[std::size_t{node.value} * sockets_ + socket];
}

Duration BusCarriage::cross(Lane& lane, Instant at, Bytes size) const {
  const std::uint64_t takes_ps = transmission_time(size, rate_).ps;
  std::uint64_t wait_ps = lane.all.left_ps(at.ps);
  lane.all.add(at.ps, takes_ps);
  if (size <= packet_) {
    const std::uint64_t loads = (wait_ps + part_ps_ - 1) / part_ps_;
    wait_ps = std::min(wait_ps, lane.packets.left_ps(at.ps) + loads * packet_ps_);
    lane.packets.add(at.ps, takes_ps);
  }
  return Duration{wait_ps};
}

std::optional<Carried> BusCarriage::carry(const Load& load) {
  Bus& there = bus_of(load.to);
  fetch_line(&there);
  Load later = load;
  later.ready = load.ready + cross(bus_of(load.from).out, load.ready, load.size);
  std::optional<Carried> times = inner_->carry(later);
  if (times->sent_again) return times;
  const Duration waits = cross(there.in, times->arrived, load.size);
  times->arrived = times->arrived + waits;
  times->answered = times->answered + waits;
  return times;
}

}  // namespace dryfly::motif
