#include "core/motif/job/bus_carriage.hpp"

#include <algorithm>
#include <utility>

#include "core/nic/nic_spec.hpp"
#include "core/spec/fields.hpp"
#include "core/spec/slow_parts.hpp"
#include "core/unit/fetch.hpp"

namespace dryfly::motif {

bool BusCarriage::is_in(const Spec& spec) {
  return spec.has(fields::node_pcie_rate_bytes_per_s) || !SlowParts::read(spec).nics.empty();
}

BusCarriage::BusCarriage(const Spec& spec, const Dragonfly& topology, std::unique_ptr<Carriage> inner)
    : inner_(std::move(inner)),
      topology_(topology),
      wires_(Wires::read(spec)),
      packet_{wires_.payload_bytes},
      nic_sockets_(nic_sockets(spec)) {
  for (const auto& [nic, share] : SlowParts::read(spec).nics) {
    slow_[nic].pace = pace_of(SlowParts::of(Rate{spec.number(fields::fabric_link_rate_bytes_per_s)}, share));
  }
  for (const std::uint32_t socket : nic_sockets_) sockets_ = std::max(sockets_, socket + 1);
  if (!spec.has(fields::node_pcie_rate_bytes_per_s)) return;
  pace_ = pace_of(Rate{spec.number(fields::node_pcie_rate_bytes_per_s)});
  buses_.resize(std::size_t{topology.node_count()} * sockets_);
}

BusCarriage::Pace BusCarriage::pace_of(Rate rate) const {
  return {rate, transmission_time(inner_->part(), rate).ps, transmission_time(packet_, rate).ps};
}

BusCarriage::Bus& BusCarriage::bus_of(NicId nic) {
  const NodeId node = topology_.node_of(nic);
  const std::uint32_t index = nic.value - topology_.nic_of(node, 0).value;
  const std::uint32_t socket = index < nic_sockets_.size() ? nic_sockets_[index] : 0;
  return buses_[std::size_t{node.value} * sockets_ + socket];
}

Duration BusCarriage::cross(Lane& lane, Instant at, Bytes size, bool is_packet, const Pace& pace) {
  const std::uint64_t takes_ps = transmission_time(size, pace.rate).ps;
  std::uint64_t wait_ps = lane.all.left_ps(at.ps);
  lane.all.add(at.ps, takes_ps);
  if (is_packet) {
    const std::uint64_t loads = (wait_ps + pace.part_ps - 1) / pace.part_ps;
    wait_ps = std::min(wait_ps, lane.packets.left_ps(at.ps) + loads * pace.packet_ps);
    lane.packets.add(at.ps, takes_ps);
  }
  return Duration{wait_ps};
}

Duration BusCarriage::cross(NicId nic, Lane Bus::* way, Instant at, Bytes size) {
  const bool is_packet = size <= packet_;
  Duration waits;
  if (pace_.rate.bytes_per_s != 0) waits = cross(bus_of(nic).*way, at, size, is_packet, pace_);
  if (slow_.empty()) return waits;
  const auto slow = slow_.find(nic);
  if (slow == slow_.end()) return waits;
  return std::max(waits, cross(slow->second.lanes.*way, at, size, is_packet, slow->second.pace));
}

std::optional<Carried> BusCarriage::carry(const Load& load) {
  if (!buses_.empty()) fetch_line(&bus_of(load.to).in);
  Load later = load;
  go_out(later);
  std::optional<Carried> times = inner_->carry(later);
  if (!times->sent_again) come_in(load, *times);
  return times;
}

void BusCarriage::come_in(const Load& load, Carried& times) {
  const Duration waits = cross(load.to, &Bus::in, times.arrived, load.size) + longer(load);
  times.arrived = times.arrived + waits;
  times.answered = times.answered + waits;
}

Duration BusCarriage::longer(const Load& load) const {
  if (slow_.empty()) return {};
  Duration takes;
  for (const NicId nic : {load.from, load.to}) {
    const auto slow = slow_.find(nic);
    if (slow != slow_.end()) takes = std::max(takes, transmission_time(load.size, slow->second.pace.rate));
  }
  const Duration on_link{wires_.serialisation_ps(load.size)};
  return Duration{takes.ps - std::min(takes.ps, on_link.ps)};
}

Instant BusCarriage::leave(Load& load) {
  go_out(load);
  return inner_->leave(load);
}

Carried BusCarriage::bring(const Load& load) {
  if (!buses_.empty()) fetch_line(&bus_of(load.to).in);
  Carried times = inner_->bring(load);
  come_in(load, times);
  return times;
}

}  // namespace dryfly::motif
