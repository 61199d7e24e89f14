#include "core/motif/job/links_carriage.hpp"

#include <algorithm>

namespace dryfly::motif {

LinksCarriage::LinksCarriage(const Spec& spec, const Dragonfly& topology, Bytes part)
    : wires_(Wires::read(spec)),
      part_(part),
      topology_(topology),
      routing_(fabric::make_routing(spec, topology)),
      draws_(spec.number(fields::run_seed), 0, Purpose::packet),
      part_ps_(wires_.serialisation_ps(part_)),
      packet_ps_(wires_.serialisation_ps(Bytes{wires_.payload_bytes})),
      queues_(topology.port_count()) {}

std::uint64_t LinksCarriage::own_ps(std::uint32_t port) const { return queues_[port].all.left_ps(now_ps_); }

fabric::Path LinksCarriage::path(SwitchId from, SwitchId to, std::uint8_t port) {
  fabric::Path path;
  if (from == to) {
    path.ports[0] = port;
    return path;
  }
  const auto draw = static_cast<std::uint32_t>(draws_.draw(loads_++));
  fabric::PacketDraws draws(draw, 0);
  fabric::lay(path, topology_, from, to, port,
              routing_->choose({.source = from, .target = to, .target_port = port}, draws, *this));
  if (path.decide_at == fabric::decided) return path;
  SwitchId at = from;
  for (std::uint32_t hop = 0; hop < path.switch_hops; ++hop) at = {topology_.peer(at, path.ports[hop]).id};
  fabric::PacketDraws further(draw, path.switch_hops);
  if (at == to) {
    path.decide_at = fabric::decided;
    path.ports[path.switch_hops] = port;
    return path;
  }
  fabric::lay(path, topology_, at, to, port,
              routing_->go_on({.source = at, .target = to, .target_port = port}, further, *this));
  return path;
}

std::uint64_t LinksCarriage::cross(Queue& queue, std::uint64_t at_ps, std::uint64_t serial_ps, bool packet) const {
  std::uint64_t wait_ps = queue.all.left_ps(at_ps);
  queue.all.add(now_ps_, serial_ps);
  if (packet) {
    const std::uint64_t loads = (wait_ps + part_ps_ - 1) / part_ps_;
    wait_ps = std::min(wait_ps, queue.packets.left_ps(at_ps) + loads * packet_ps_);
    queue.packets.add(now_ps_, serial_ps);
  }
  return at_ps + wait_ps;
}

std::optional<Carried> LinksCarriage::carry(const Load& load) {
  const std::uint64_t serial_ps = wires_.serialisation_ps(load.size);
  const bool packet = load.size.count <= wires_.payload_bytes;
  now_ps_ = load.ready.ps;
  const Instant left = load.ready + Duration{serial_ps};
  if (load.from == load.to) return Carried{.left = left, .arrived = left, .answered = left + Duration{wires_.ack_ps}};
  SwitchId at = topology_.switch_of(load.from);
  const fabric::Path way = path(at, topology_.switch_of(load.to), topology_.port_of(load.to));
  std::uint64_t head_ps = load.ready.ps + wires_.edge_ps;
  std::uint64_t unloaded_ps = wires_.edge_ps;
  for (std::uint32_t hop = 0; hop <= way.switch_hops; ++hop) {
    const std::uint32_t port = topology_.first_port(at) + way.ports[hop];
    const Peer& peer = topology_.peer(at, way.ports[hop]);
    const std::uint64_t flight_ps = peer.kind == Peer::Kind::nic            ? wires_.edge_ps
                                    : peer.kind == Peer::Kind::local_switch ? wires_.local_ps
                                                                            : wires_.global_ps;
    head_ps = cross(queues_[port], head_ps + wires_.switch_ps, serial_ps, packet) + flight_ps;
    unloaded_ps += wires_.switch_ps + flight_ps;
    if (peer.kind != Peer::Kind::nic) at = {peer.id};
  }
  const Instant arrived{head_ps + serial_ps};
  return Carried{.left = left, .arrived = arrived, .answered = arrived + Duration{unloaded_ps + wires_.ack_ps}};
}

}  // namespace dryfly::motif
