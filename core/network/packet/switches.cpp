#include "core/network/packet/switches.hpp"

#include <utility>

namespace dryfly::fabric {

Switches::Switches(const Dragonfly& dragonfly, const FabricSpec& fabric, std::unique_ptr<Routing> routing, Links& links,
                   SharedPool<Packet>& packets, Transfers& transfers)
    : dragonfly_(dragonfly),
      links_(links),
      packets_(packets),
      transfers_(transfers),
      queues_(packets),
      routing_(std::move(routing)),
      loads_(links),
      qos_(fabric.qos),
      hot_spots_(fabric, links),
      ack_ps_(static_cast<std::uint32_t>(transmission_time(fabric.ack, fabric.rate).ps)) {}

void Switches::head(std::uint32_t input, std::uint32_t index) {
  Packet& packet = packets_[index];
  const std::uint32_t first_port = links_[input].first_port;
  if (packet.kind != PacketKind::data) {
    forward_acknowledgement(input, index);
    return;
  }
  if (packet.place == packet.path.decide_at) route(packet, first_port);
  const std::uint32_t output = first_port + packet.path.ports[packet.place];
  Port& port = links_[output];
  // A NIC takes whatever comes: towards it there is one channel, and no credits.
  const std::uint32_t channel = port.leads_to_nic ? 0 : channel_out(packet.place);
  if (may_go_at_once(port, output, packet, channel)) {
    grant(output, input, index);
  } else {
    queues_.push(port, channel, input - first_port, index);
    links_.note_load(port, output);
    sleep(output);
  }
  if (port.leads_to_nic && hot_spots_.watches(port)) {
    const Packet& come = packets_[index];
    const HotSpots::Come joined{transfers_[come.transfer].source, come.traffic_class, come.transmission_ps};
    if (hot_spots_.joined(port, joined, queues_.waiting_ps(port, come.traffic_class))) send_notice(come, input, port);
  }
}

// The switch knows nothing of it, so no account of a hot end-point counts it; that it waits is seen in the queue.
void Switches::looped(std::uint32_t output, std::uint32_t index) {
  Port& port = links_[output];
  if (may_go_at_once(port, output, packets_[index], 0)) return grant(output, output, index);
  queues_.push(port, 0, output - port.first_port, index);
  sleep(output);
}

void Switches::prefetch_for_head(std::uint32_t input, std::uint32_t index, unsigned stage) const {
  const Packet& packet = packets_[index];
  const Port& in = links_[input];
  const bool is_data = packet.kind == PacketKind::data;
  if (is_data && packet.place == packet.path.decide_at) {
    // The output is not known yet.
    if (stage == 1) transfers_.prefetch(packet.transfer);
  } else if (const std::uint32_t output = in.first_port + packet.path.ports[packet.place]; stage == 1) {
    links_.prefetch(output);
    if (is_data) links_.prefetch_credit(output, packet.traffic_class, channel_out(packet.place));
  } else if (is_data && links_[output].waiting > 0) {
    queues_.prefetch(links_[output]);
  }
  if (!is_data || stage != 1 || links_.is_far(in)) return;
  links_.prefetch(in.peer);
  links_.prefetch_credit(in.peer, packet.traffic_class, channel_in(packet.place));
}

void Switches::prefetch_for_wake(std::uint32_t output, unsigned stage) const {
  if (stage == 1) {
    queues_.prefetch(links_[output]);
  } else {
    queues_.prefetch_first_in_line(links_[output]);
  }
}

bool Switches::may_go_at_once(Port& output, std::uint32_t output_id, const Packet& packet, std::uint32_t channel) {
  if (output.waiting > 0 || !links_.accepts(output)) return false;
  if (is_capped(packet.traffic_class) &&
      !queues_.arbiter(output).below_ceiling(packet.traffic_class, links_.now_ps())) {
    return false;
  }
  return output.leads_to_nic || links_.has_credit(output_id, packet.traffic_class, channel);
}

void Switches::route(Packet& packet, std::uint32_t first_port) {
  const OpenTransfer& transfer = transfers_[packet.transfer];
  // Only a packet that is to be decided asks which switch it is at, and only the first decision is frequent.
  const SwitchId here = packet.place == 0 ? dragonfly_.switch_of(transfer.source) : dragonfly_.switch_with(first_port);
  if (transfer.flow == none) {
    decide(packet.path, transfer, packet.draw, here);
    return;
  }
  Flow& flow = transfers_.flow(transfer.flow);
  if (manager_ != nullptr && is_left_behind(packet, flow)) {
    decide(packet.path, transfer, packet.draw, here);
    return;
  }
  if (packet.place == 0 && !flow.routed) {
    flow.path = Path{};
    flow.routed = true;
  } else if (packet.place == 0 && flow.leaves == none && should_leave(flow, transfer, packet.draw, here)) {
    transfers_.drain(flow, first_port + flow.path.ports[0]);
  }
  if (flow.path.decide_at == packet.place) {
    const Way way = decide(flow.path, transfer, packet.draw, here);
    if (packet.place == 0) flow.way = way;
  }
  // Behind the packet its path holds the way home.
  packet.path.switch_hops = flow.path.switch_hops;
  packet.path.decide_at = flow.path.decide_at == packet.place ? decided : flow.path.decide_at;
  for (std::uint32_t place = packet.place; place < most_switches; ++place) {
    packet.path.ports[place] = flow.path.ports[place];
  }
}

bool Switches::should_leave(const Flow& flow, const OpenTransfer& transfer, std::uint32_t draw, SwitchId here) {
  const RouteQuery query{here, dragonfly_.switch_of(transfer.target), dragonfly_.port_of(transfer.target)};
  if (query.source == query.target) return false;
  PacketDraws draws{draw, 0};
  const std::uint64_t leaving_ps = transfers_.leaving_ps(dragonfly_.first_port(here) + flow.path.ports[0]);
  return routing_->should_leave(query, flow.way, leaving_ps, draws, loads_);
}

// A flow leaves a path that is out of use in the middle of its packets: those that are overtaken by that are late, and
// what overtook them is refused by the target and sent again.
bool Switches::is_left_behind(Packet& packet, Flow& flow) const {
  if (packet.place != 0) return packet.path_number != flow.path_number;
  const SwitchId source = dragonfly_.switch_of(transfers_[packet.transfer].source);
  if (flow.routed && manager_->avoids(flow.path, source, 0)) flow.routed = false;
  if (!flow.routed) ++flow.path_number;
  packet.path_number = flow.path_number;
  return false;
}

Way Switches::decide_in_use(Path& path, const OpenTransfer& transfer, std::uint32_t draw, SwitchId here) const {
  const RouteQuery query{here, dragonfly_.switch_of(transfer.target), dragonfly_.port_of(transfer.target)};
  Way way;
  manager_->lay_in_use(path, query, draw, [&](std::uint32_t drawn) { way = lay_drawn(path, transfer, drawn, here); });
  return way;
}

Way Switches::lay_drawn(Path& path, const OpenTransfer& transfer, std::uint32_t draw, SwitchId here) const {
  const RouteQuery query{here, dragonfly_.switch_of(transfer.target), dragonfly_.port_of(transfer.target)};
  Way way;
  way.via = query.target;
  if (query.source != query.target) {
    PacketDraws draws{draw, path.decide_at};
    way = path.decide_at == 0 ? routing_->choose(query, draws, loads_) : routing_->go_on(query, draws, loads_);
  }
  lay(path, dragonfly_, query.source, query.target, query.target_port, way);
  return way;
}

void Switches::forward_acknowledgement(std::uint32_t input, std::uint32_t index) {
  Packet& packet = packets_[index];
  Port& in = links_[input];
  if (in.leads_to_nic && packet.kind != PacketKind::notice) {
    const std::uint32_t traffic_class = packet.traffic_class;
    packet.interval_ps() = hot_spots_.interval_ps(in, traffic_class, queues_.waiting_ps(in, traffic_class));
  }
  Port& output = links_[in.first_port + packet.path.ports[packet.place]];
  const std::uint64_t start_ps = links_.commit(output, ack_ps_);
  if (packet.place == 0) {
    links_.schedule_at_nic(output, start_ps + ack_ps_, EventKind::acknowledgement_at_nic, index);
  } else {
    --packet.place;
    links_.schedule_head_at_switch(output, start_ps, index, packet);
  }
}

// By the ports through which the packet came.
void Switches::send_notice(const Packet& packet, std::uint32_t input, Port& output) {
  const std::uint32_t interval_ps =
      hot_spots_.interval_ps(output, packet.traffic_class, queues_.waiting_ps(output, packet.traffic_class));
  if (interval_ps == 0) return;
  Packet notice = packet;
  notice.kind = PacketKind::notice;
  notice.place = notice.path.switch_hops;
  notice.path.ports[notice.place] = static_cast<std::uint8_t>(input - links_[input].first_port);
  notice.interval_ps() = interval_ps;
  const std::uint32_t index = packets_.take();
  packets_[index] = notice;
  forward_acknowledgement(input, index);
}

void Switches::grant(std::uint32_t output, std::uint32_t input, std::uint32_t index) {
  Packet& packet = packets_[index];
  Port& out = links_[output];
  const Port& in = links_[input];
  const std::uint32_t place = packet.place;
  const std::uint32_t traffic_class = packet.traffic_class;
  const std::uint64_t start_ps = links_.commit(out, packet.transmission_ps);
  const std::uint64_t end_ps = start_ps + packet.transmission_ps;
  if (packet.looped) [[unlikely]] {
    if (is_capped(traffic_class) || out.waiting > 0) serve(out, packet);
    return links_.schedule_in_nic(out.peer, end_ps, EventKind::packet_at_nic, index);
  }

  if (links_.is_far(in)) {
    links_.return_credit_far(in, traffic_class, channel_in(place), packet.frame_bytes, end_ps + in.flight_ps);
  } else {
    links_.return_credit(in.peer, traffic_class, channel_in(place), packet.frame_bytes, end_ps + in.flight_ps);
    wake_sender(in.peer, traffic_class, channel_in(place));
  }
  links_.count(out, output, traffic_class, packet.frame_bytes);
  links_.note_load(out, output);
  if (is_capped(traffic_class) || out.waiting > 0) serve(out, packet);
  packet.path.ports[place] = static_cast<std::uint8_t>(input - in.first_port);
  if (out.leads_to_nic) {
    links_.schedule_at_nic(out, end_ps, EventKind::packet_at_nic, index);
  } else {
    links_.take_credit(output, traffic_class, channel_out(place), packet.frame_bytes);
    ++packet.place;
    links_.schedule_head_at_switch(out, start_ps, index, packet);
  }
}

void Switches::serve(Port& output, const Packet& packet) {
  queues_.arbiter(output).serve(qos_, packet.traffic_class, qos_.classes[packet.traffic_class].fabric_ppm,
                                packet.transmission_ps, links_.now_ps());
}

void Switches::credit_from_far(const Crossing& crossing) {
  const std::uint32_t port = port_of({crossing.at_ps, crossing.key});
  links_.return_credit(port, crossing.traffic_class, crossing.channel, crossing.credit_bytes, crossing.at_ps);
  wake_sender(port, crossing.traffic_class, crossing.channel);
}

void Switches::wake_sender(std::uint32_t port, std::uint32_t traffic_class, std::uint32_t channel) {
  const Port& sender = links_[port];
  if (sender.waiting == 0) return;
  if (links_.is_nic_port(port) || queues_.any(sender, traffic_class, channel)) {
    links_.wake(port, links_.credit_at_ps(port, traffic_class, channel));
  }
}

void Switches::wake(std::uint32_t output) {
  Port& port = links_[output];
  if (port.wake_at_ps != links_.now_ps()) return;
  port.wake_at_ps = never.ps;
  while (port.waiting > 0 && links_.wants_more(port)) {
    const OutputQueues::Turn turn = next_turn(output);
    if (turn.packet == none) break;
    grant(output, port.first_port + turn.input, turn.packet);
  }
  if (port.waiting > 0) sleep(output);
}

OutputQueues::Turn Switches::next_turn(std::uint32_t output) {
  Port& port = links_[output];
  const auto present = static_cast<std::uint32_t>(port.classes);
  std::array<std::uint32_t, most_classes> ready{};
  std::uint32_t candidates = 0;
  for (std::uint32_t traffic_class = 0; traffic_class < qos_.classes.size(); ++traffic_class) {
    if (((present >> traffic_class) & 1) == 0) continue;
    ready[traffic_class] = ready_channels(output, traffic_class);
    if (ready[traffic_class] != 0) candidates |= 1U << traffic_class;
  }
  if (candidates == 0) return {};
  const std::uint32_t chosen = queues_.arbiter(port).choose(qos_, candidates, links_.now_ps());
  if (chosen == no_class) return {};
  return queues_.pop(port, chosen, ready[chosen]);
}

std::uint32_t Switches::ready_channels(std::uint32_t output, std::uint32_t traffic_class) {
  const Port& port = links_[output];
  if (port.leads_to_nic) return 1;
  std::uint32_t ready = 0;
  for (std::uint32_t channel = 0; channel < channel_count; ++channel) {
    if (queues_.any(port, traffic_class, channel) && links_.has_credit(output, traffic_class, channel)) {
      ready |= 1U << channel;
    }
  }
  return ready;
}

// Until the earliest instant at which anything that waits may go by its credit and its ceiling; without a credit on
// its way, until the switch at the other end returns some.
void Switches::sleep(std::uint32_t output) {
  Port& port = links_[output];
  const auto present = static_cast<std::uint32_t>(port.classes);
  std::uint64_t at_ps = never.ps;
  for (std::uint32_t traffic_class = 0; traffic_class < qos_.classes.size(); ++traffic_class) {
    if (((present >> traffic_class) & 1) == 0) continue;
    std::uint64_t class_at_ps = port.leads_to_nic ? links_.now_ps() : never.ps;
    for (std::uint32_t channel = 0; channel < channel_count && !port.leads_to_nic; ++channel) {
      if (!queues_.any(port, traffic_class, channel)) continue;
      class_at_ps = std::min(class_at_ps, links_.credit_at_ps(output, traffic_class, channel));
    }
    if (is_capped(traffic_class)) {
      class_at_ps = std::max(class_at_ps, queues_.arbiter(port).allowed_at_ps(traffic_class));
    }
    at_ps = std::min(at_ps, class_at_ps);
  }
  links_.wake(output, at_ps);
}

}  // namespace dryfly::fabric
