#include "core/network/packet/links.hpp"

#include <algorithm>

namespace dryfly::fabric {

SharedState::SharedState() = default;
SharedState::~SharedState() = default;

Links::Links(Engine& engine, const Dragonfly& dragonfly, const FabricSpec& fabric, const Spec& spec,
             const Region& region)
    : engine_(engine),
      frame_max_ps_(transmission_time(fabric.frame_max(), fabric.rate).ps),
      latency_least_ps_(fabric.switch_latency.ps - fabric.latency_spread.ps),
      latency_values_(2 * fabric.latency_spread.ps + 1),
      staleness_ps_(fabric.staleness.ps),
      input_buffer_(fabric.input_buffer),
      frame_max_(fabric.frame_max()),
      first_nic_port_(dragonfly.port_count()),
      region_(region),
      port_count_(std::size_t{dragonfly.port_count()} + dragonfly.nic_count()) {
  DRYFLY_CHECK(port_count_ < (std::size_t{1} << 24));  // bits of a port in an event's key
  SharedState& shared = *region.shared;
  const bool is_first = shared.ports.empty();
  shared.ports.resize(port_count_);
  shared.told.resize(dragonfly.port_count());
  ports_ = shared.ports.data();
  told_ = shared.told.data();
  if (!is_first) return;
  connect_ports(dragonfly, Wiring(dragonfly, fabric, spec));
}

void Links::connect_ports(const Dragonfly& dragonfly, const Wiring& wiring) {
  if (region_.is_part) region_.shared->group_behind.resize(dragonfly.port_count());
  for (std::uint32_t id = 0; id < port_count_; ++id) {
    ports_[id].peer = wiring.peer(id);
    ports_[id].flight_ps = wiring.flight_ps(id);
  }
  for (std::uint32_t at = 0; at < dragonfly.switch_count(); ++at) {
    const std::uint32_t first = dragonfly.first_port({at});
    for (std::uint32_t index = 0; index < dragonfly.ports_of({at}); ++index) {
      const Peer& peer = dragonfly.peer({at}, index);
      Port& port = ports_[first + index];
      port.first_port = first;
      port.leads_to_nic = peer.kind == Peer::Kind::nic;
      port.is_global = !port.leads_to_nic && peer.kind != Peer::Kind::local_switch;
      if (region_.is_part && !port.leads_to_nic)
        region_.shared->group_behind[first + index] = static_cast<std::uint16_t>(dragonfly.group_of({peer.id}).value);
    }
  }
}

void Links::open(std::uint32_t traffic_class) {
  if (!credits_[traffic_class].empty()) return;
  SharedState& shared = *region_.shared;
  credits_[traffic_class] =
      Credits{shared.credit_lines[traffic_class], port_count_ * channel_count, input_buffer_, frame_max_};
  if (shared.first_class == none) shared.first_class = traffic_class;
  if (shared.first_class != traffic_class) shared.other_bytes[traffic_class].resize(port_count_);
}

std::uint64_t Links::credits_outstanding() {
  std::uint64_t bytes = 0;
  for (Credits& credits : credits_) bytes += credits.outstanding(now_ps());
  return bytes;
}

std::uint64_t Links::sent_bytes(std::uint32_t port, std::uint32_t traffic_class) const {
  const SharedState& shared = *region_.shared;
  if (traffic_class != shared.first_class) {
    return shared.other_bytes[traffic_class].empty() ? 0 : shared.other_bytes[traffic_class][port];
  }
  std::uint64_t bytes = ports_[port].sent_bytes;
  for (const LargeVector<std::uint64_t>& other : shared.other_bytes) bytes -= other.empty() ? 0 : other[port];
  return bytes;
}

std::uint64_t Links::told_ps(std::uint32_t port) const {
  const Told& told = told_[port];
  const std::uint64_t then_ps = now_ps() > staleness_ps_ ? now_ps() - staleness_ps_ : 0;
  const std::uint64_t done_ps = told.at_ps <= then_ps ? told.done_ps : told.before_done_ps;
  return done_ps > then_ps ? done_ps - then_ps : 0;
}

void Links::wake(std::uint32_t port, std::uint64_t credit_ps) {
  if (credit_ps == never.ps) return;
  Port& sleeper = ports_[port];
  const std::uint64_t half_ps = frame_max_ps_ / 2;
  std::uint64_t at_ps = std::max(credit_ps, now_ps());
  if (sleeper.busy_until_ps > at_ps + half_ps) at_ps = sleeper.busy_until_ps - half_ps;
  if (at_ps >= sleeper.wake_at_ps) return;
  sleeper.wake_at_ps = at_ps;
  schedule(at_ps, EventKind::output_wakes, port, 0);
}

std::uint64_t Links::commit_in_trouble(Port& port, std::uint32_t transmission_ps) const {
  std::uint64_t start_ps = std::max(port.busy_until_ps, now_ps());
  start_ps += faults_->delay_ps(static_cast<std::uint32_t>(&port - ports_), start_ps, transmission_ps);
  port.busy_until_ps = start_ps + transmission_ps;
  return start_ps;
}

bool Links::lost(EventKind kind, std::uint32_t port, const Packet& packet, std::uint32_t transmission_ps) {
  const std::uint32_t id = ports_[port].peer;
  const std::uint64_t flight_ps = ports_[id].flight_ps;
  const std::uint64_t behind_ps = kind == EventKind::head_at_switch ? latency_ps(packet) : transmission_ps;
  const std::uint64_t start_ps = now_ps() - flight_ps - behind_ps;
  if (!faults_->down_during(id, start_ps, start_ps + transmission_ps + flight_ps)) return false;
  faults_->note_loss(id);
  return true;
}

void Links::return_lost_credit(std::uint32_t port, const Packet& packet) {
  const std::uint32_t sender = ports_[port].peer;
  return_credit(sender, packet.traffic_class, channel_in(packet.place), packet.frame_bytes, now_ps());
  if (ports_[sender].waiting > 0) wake(sender, now_ps());
}

}  // namespace dryfly::fabric
