#include "core/motif/job/links_carriage.hpp"

#include <algorithm>

#include "core/unit/fetch.hpp"

namespace dryfly::motif {
namespace {

constexpr std::size_t cached = std::size_t{4} << 20;  // bytes that a core has near, about

}  // namespace

LinksCarriage::LinksCarriage(const Spec& spec, const Dragonfly& topology, Bytes part)
    : wires_(Wires::read(spec)),
      part_(part),
      topology_(topology),
      routing_(fabric::make_routing(spec, topology)),
      draws_(spec.number(fields::run_seed), 0, Purpose::packet),
      part_ps_(wires_.serialisation_ps(part_)),
      packet_ps_(wires_.serialisation_ps(Bytes{wires_.payload_bytes})),
      ports_(ports_of_machine()),
      is_far_(ports_.size() * sizeof(Port) > cached),
      trouble_(Trouble::planted_in(spec, topology)) {}

LargeVector<LinksCarriage::Port> LinksCarriage::ports_of_machine() const {
  LargeVector<Port> ports(topology_.port_count());
  for (std::uint32_t at = 0; at < topology_.switch_count(); ++at) {
    const std::uint32_t first = topology_.first_port({at});
    for (std::uint32_t port = 0; port < topology_.ports_of({at}); ++port) {
      const Peer& peer = topology_.peer({at}, port);
      Port& made = ports[first + port];
      made.flight_ps = peer.kind == Peer::Kind::nic            ? wires_.edge_ps
                       : peer.kind == Peer::Kind::local_switch ? wires_.local_ps
                                                               : wires_.global_ps;
      if (peer.kind != Peer::Kind::local_switch && peer.kind != Peer::Kind::global_switch) continue;
      made.next = {peer.id};
      made.next_ports = topology_.first_port(made.next);
    }
  }
  return ports;
}

std::uint64_t LinksCarriage::own_ps(std::uint32_t port) const { return ports_[port].all.left_ps(now_ps_); }

void LinksCarriage::lay_drawn(fabric::Path& path, const fabric::RouteQuery& query, std::uint32_t draw) const {
  fabric::PacketDraws draws(draw, path.decide_at);
  const fabric::Way way =
      path.decide_at == 0 ? routing_->choose(query, draws, *this) : routing_->go_on(query, draws, *this);
  fabric::lay(path, topology_, query.source, query.target, query.target_port, way);
}

fabric::Path LinksCarriage::path(SwitchId from, SwitchId to, std::uint8_t port) {
  fabric::Path path;
  if (from == to) {
    path.ports[0] = port;
    return path;
  }
  const auto draw = static_cast<std::uint32_t>(draws_.draw(loads_++));
  decide(path, {.source = from, .target = to, .target_port = port}, draw);
  if (path.decide_at == fabric::decided) return path;
  SwitchId at = from;
  for (std::uint32_t hop = 0; hop < path.switch_hops; ++hop) {
    at = ports_[topology_.first_port(at) + path.ports[hop]].next;
  }
  if (at == to) {
    path.decide_at = fabric::decided;
    path.ports[path.switch_hops] = port;
    return path;
  }
  decide(path, {.source = at, .target = to, .target_port = port}, draw);
  return path;
}

void LinksCarriage::decide(fabric::Path& path, const fabric::RouteQuery& query, std::uint32_t draw) {
  if (trouble_ != nullptr) [[unlikely]]
    return decide_in_trouble(path, query, draw);
  lay_drawn(path, query, draw);
}

void LinksCarriage::decide_in_trouble(fabric::Path& path, const fabric::RouteQuery& query, std::uint32_t draw) {
  trouble_->manager().lay_in_use(path, query, draw, [&](std::uint32_t drawn) { lay_drawn(path, query, drawn); });
}

std::uint64_t LinksCarriage::cross(Port& port, std::uint64_t at_ps, std::uint64_t serial_ps, bool packet) const {
  std::uint64_t wait_ps = port.all.left_ps(at_ps);
  port.all.add(now_ps_, serial_ps);
  if (packet) {
    const std::uint64_t loads = (wait_ps + part_ps_ - 1) / part_ps_;
    wait_ps = std::min(wait_ps, port.packets.left_ps(at_ps) + loads * packet_ps_);
    port.packets.add(now_ps_, serial_ps);
  }
  return at_ps + wait_ps;
}

std::optional<Carried> LinksCarriage::carry(const Load& load) {
  if (trouble_ != nullptr) [[unlikely]]
    return carry_in_trouble(load);
  return pass(load, NoToll{});
}

// What is lost is late for its NIC too: with faults there are no parts.
std::optional<Duration> LinksCarriage::least_way() const {
  if (trouble_ != nullptr) return std::nullopt;
  return Duration{wires_.way_ps(0, 0)};
}

Carried LinksCarriage::bring(const Load& load) { return pass(load, NoToll{}); }

Carried LinksCarriage::carry_in_trouble(const Load& load) {
  return trouble_->carry(load, [this](const Load& sent, Trouble::Toll& toll) { return pass(sent, toll); });
}

template <class Toll>
Carried LinksCarriage::pass(const Load& load, Toll&& toll) {
  const std::uint64_t serial_ps = wires_.serialisation_ps(load.size);
  const bool packet = load.size.count <= wires_.payload_bytes;
  now_ps_ = load.ready.ps;
  const Instant left = load.ready + Duration{serial_ps};
  if (load.from == load.to) return {.left = left, .arrived = left, .answered = left + Duration{wires_.ack_ps}};
  const SwitchId source = topology_.switch_of(load.from);
  const SwitchId target = topology_.switch_of(load.to);
  const std::uint8_t target_port = topology_.port_of(load.to);
  // Choosing a way takes as long as memory does.
  fetch_line(&target_of(load));
  const fabric::Path way = path(source, target, target_port);
  const Lag at_nic = toll.on(wires_.nic_port(topology_, load.from), load.ready.ps);
  std::uint64_t head_ps = load.ready.ps + at_nic.later_ps + wires_.edge_ps;
  std::uint64_t unloaded_ps = wires_.edge_ps;
  std::uint32_t ports = topology_.first_port(source);
  for (std::uint32_t hop = 0; hop <= way.switch_hops; ++hop) {
    const std::uint32_t number = ports + way.ports[hop];
    Port& port = ports_[number];
    head_ps += wires_.switch_ps;
    const bool alone = toll.alone();
    if (!alone) head_ps = cross(port, head_ps, serial_ps, packet);
    const Lag lag = toll.on(number, head_ps);
    if (lag.longer_ps > 0 && !alone) {
      port.all.add(now_ps_, lag.longer_ps);
      if (packet) port.packets.add(now_ps_, lag.longer_ps);
    }
    head_ps += lag.later_ps + port.flight_ps;
    unloaded_ps += wires_.switch_ps + port.flight_ps;
    ports = port.next_ports;
  }
  const Instant arrived{head_ps + serial_ps};
  const Duration home{unloaded_ps + wires_.ack_ps + toll.answer_ps(arrived.ps)};
  return {.left = left + Duration{at_nic.longer_ps}, .arrived = arrived, .answered = arrived + home};
}

}  // namespace dryfly::motif
