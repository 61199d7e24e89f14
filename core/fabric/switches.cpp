#include "core/fabric/switches.hpp"

namespace dryfly::fabric {
Switches::Switches(const Dragonfly& dragonfly, const FabricSpec& fabric, Links& links, Pool<Packet>& packets,
                   Transfers& transfers)
    : dragonfly_(dragonfly),
      links_(links),
      packets_(packets),
      transfers_(transfers),
      queues_(packets),
      routing_(make_routing(fabric, dragonfly)),
      seed_(fabric.seed),
      ack_ps_(static_cast<std::uint32_t>(transmission_time(fabric.ack, fabric.rate).ps)) {}

void Switches::head(std::uint32_t input, std::uint32_t index) {
  Packet& packet = packets_[index];
  const std::uint32_t first_port = links_[input].first_port;
  if (packet.is_acknowledgement) {
    forward_acknowledgement(links_[input], index);
    return;
  }
  if (packet.place == 0) route(packet);
  const std::uint32_t output = first_port + packet.path.ports[packet.place];
  Port& port = links_[output];
  // A NIC takes whatever comes: towards it there is one channel, and no credits.
  const std::uint32_t channel = port.leads_to_nic ? 0 : channel_out(packet.place);
  const bool free = port.waiting == 0 && links_.accepts(port);
  if (free && (port.leads_to_nic || links_.has_credit(output, channel))) {
    grant(output, input, index);
    return;
  }
  queues_.push(port, channel, input - first_port, index);
  sleep(output);
}

void Switches::route(Packet& packet) {
  const OpenTransfer& transfer = transfers_[packet.transfer];
  if (transfer.flow == none) {
    packet.path = draw_path_in_use(transfer, packet.sequence);
    return;
  }
  Flow& flow = transfers_.flow(transfer.flow);
  // What overtakes packets on a path that is left in the middle of a flow is refused and sent again.
  const bool leaves = manager_ != nullptr && manager_->avoids(flow.path, dragonfly_.switch_of(transfer.source));
  if (!flow.routed || leaves) {
    flow.path = draw_path_in_use(transfer, packet.sequence);
    flow.routed = true;
  }
  packet.path = flow.path;
}

Path Switches::draw_path_in_use(const OpenTransfer& transfer, std::uint32_t sequence) {
  Path path = draw_path(transfer, sequence);
  if (manager_ == nullptr) return path;
  const SwitchId source = dragonfly_.switch_of(transfer.source);
  for (std::uint64_t again = 1; manager_->avoids(path, source); ++again) {
    if (again > Manager::tries) {
      const SwitchId target = dragonfly_.switch_of(transfer.target);
      return manager_->way_left(source, target, dragonfly_.port_of(transfer.target)).value_or(path);
    }
    path = draw_path(transfer, sequence | again << 32);
  }
  return path;
}

Path Switches::draw_path(const OpenTransfer& transfer, std::uint64_t sequence) const {
  const RouteQuery query{dragonfly_.switch_of(transfer.source), dragonfly_.switch_of(transfer.target),
                         dragonfly_.port_of(transfer.target)};
  Way way;
  way.via = query.target;
  if (query.source != query.target) {
    const RandomStream stream{seed_, transfer.source.value, Purpose::route};
    PacketDraws draws{stream, sequence};
    way = routing_->choose(query, draws, LoadView{links_});
  }
  return path_along(dragonfly_, query.source, query.target, query.target_port, way);
}

void Switches::forward_acknowledgement(const Port& input, std::uint32_t index) {
  Packet& packet = packets_[index];
  Port& output = links_[input.first_port + packet.path.ports[packet.place]];
  const std::uint64_t start_ps = links_.commit(output, ack_ps_);
  if (packet.place == 0) {
    links_.schedule_at_nic(output, start_ps + ack_ps_, EventKind::acknowledgement_at_nic, index);
  } else {
    --packet.place;
    links_.schedule_head_at_switch(output, start_ps, index);
  }
}

void Switches::grant(std::uint32_t output, std::uint32_t input, std::uint32_t index) {
  Packet& packet = packets_[index];
  Port& out = links_[output];
  const Port& in = links_[input];
  const std::uint32_t place = packet.place;
  const std::uint64_t start_ps = links_.commit(out, packet.transmission_ps);
  const std::uint64_t end_ps = start_ps + packet.transmission_ps;

  links_.return_credit(in.peer, channel_in(place), packet.frame_bytes, end_ps + in.flight_ps);
  wake_sender(in.peer, channel_in(place));
  packet.path.ports[place] = static_cast<std::uint8_t>(input - in.first_port);
  if (out.leads_to_nic) {
    links_.schedule_at_nic(out, end_ps, EventKind::packet_at_nic, index);
  } else {
    links_.take_credit(output, channel_out(place), packet.frame_bytes);
    ++packet.place;
    links_.schedule_head_at_switch(out, start_ps, index);
  }
}

void Switches::wake_sender(std::uint32_t port, std::uint32_t channel) {
  const Port& sender = links_[port];
  if (sender.waiting == 0) return;
  if (links_.is_nic_port(port) || queues_.any(sender, channel)) links_.wake(port, links_.credit_at_ps(port, channel));
}

void Switches::wake(std::uint32_t output) {
  Port& port = links_[output];
  if (port.wake_at_ps != links_.now_ps()) return;
  port.wake_at_ps = never.ps;
  while (port.waiting > 0 && links_.wants_more(port)) {
    const OutputQueues::Turn turn = queues_.pop(port, ready_channels(output));
    if (turn.packet == none) break;
    grant(output, port.first_port + turn.input, turn.packet);
  }
  if (port.waiting > 0) sleep(output);
}

std::uint32_t Switches::ready_channels(std::uint32_t output) {
  const Port& port = links_[output];
  if (port.leads_to_nic) return 1;
  std::uint32_t ready = 0;
  for (std::uint32_t channel = 0; channel < channel_count; ++channel) {
    if (queues_.any(port, channel) && links_.has_credit(output, channel)) ready |= 1U << channel;
  }
  return ready;
}

// Until the earliest credit for anything that waits; without one on its way, until the switch at the other end
// returns some.
void Switches::sleep(std::uint32_t output) {
  const Port& port = links_[output];
  std::uint64_t credit_ps = port.leads_to_nic ? links_.now_ps() : never.ps;
  for (std::uint32_t channel = 0; channel < channel_count && !port.leads_to_nic; ++channel) {
    if (queues_.any(port, channel)) credit_ps = std::min(credit_ps, links_.credit_at_ps(output, channel));
  }
  links_.wake(output, credit_ps);
}

}  // namespace dryfly::fabric
