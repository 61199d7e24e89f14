#include "core/network/packet/nic_ports.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/unit/fetch.hpp"

namespace dryfly::fabric {

namespace {

// The host's bus cannot carry another packet of this NIC yet; the port will wake when it can.
bool waits_for(const HostBus& bus, Links& links, NicId nic) {
  const std::uint64_t at_ps = bus.may_send(nic).ps;
  if (at_ps <= links.now_ps()) return false;
  const std::uint32_t id = links.nic_port(nic);
  links[id].waiting = 1;
  links.wake(id, at_ps);
  return true;
}

}  // namespace

NicPorts::NicPorts(NicId first_nic, std::uint32_t nics, const FabricSpec& fabric, Links& links,
                   SharedPool<Packet>& packets, Transfers& transfers)
    : links_(links),
      packets_(packets),
      transfers_(transfers),
      connections_(fabric, links.in_regions() ? 0 : nics, links, packets, transfers, resends_,
                   static_cast<ResendOutlet&>(*this)),
      qos_(fabric.qos),
      holds_(transfers, links.frame_max_ps(), fabric.congestion_round_trip.ps),
      first_nic_(first_nic.value),
      nics_(nics),
      frames_(fabric),
      window_packets_(fabric.window_packets),
      ack_ps_(static_cast<std::uint32_t>(transmission_time(fabric.ack, fabric.rate).ps)) {
  for (std::uint32_t nic = 0; nic < nics; ++nic) {
    nics_[nic].stream = RandomStream{fabric.seed, first_nic_ + nic, Purpose::packet}.draw(0);
  }
}

void NicPorts::submit(const Transfer& asked) {
  DRYFLY_CHECK(asked.source.value - first_nic_ < nics_.size() && links_.nic_port(asked.target) < links_.count());
  DRYFLY_CHECK(!asked.ordered || !links_.in_regions());
  const std::uint32_t traffic_class = qos_.of(asked.traffic_class);
  if (turns_[traffic_class].empty()) open_class(traffic_class);
  const std::uint32_t index = transfers_.open(asked, traffic_class, frames_.payload_max());
  OpenTransfer& transfer = transfers_[index];
  transfer.meets_bus = bus_ != nullptr && bus_->concerns(asked);
  if (transfer.flow != none) {
    Flow& flow = transfers_.flow(transfer.flow);
    const std::uint32_t before = flow.last_unsent;
    flow.last_unsent = index;
    if (before != none) {
      transfers_[before].next_in_flow = index;
      return;
    }
  }
  append_turn(asked.source, index);
  send(asked.source);
}

void NicPorts::open_class(std::uint32_t traffic_class) {
  links_.open(traffic_class);
  turns_[traffic_class].resize(nics_.size());
}

void NicPorts::append_turn(NicId nic, std::uint32_t index) {
  OpenTransfer& transfer = transfers_[index];
  Turns& line = turns(nic, transfer.traffic_class);
  transfer.next_turn = none;
  if (line.first == none) {
    line.first = index;
    egress(nic).classes |= 1U << transfer.traffic_class;
  } else {
    transfers_[line.last].next_turn = index;
  }
  line.last = index;
}

std::uint32_t NicPorts::take_turn(NicId nic, std::uint32_t traffic_class) {
  Turns& line = turns(nic, traffic_class);
  const std::uint32_t front = line.first;
  line.first = transfers_[front].next_turn;
  if (line.first == none) egress(nic).classes &= ~(1U << traffic_class);
  return front;
}

// The transfer at the front has sent a packet: it goes behind the others, or its flow's next one does.
void NicPorts::pass_turn(NicId nic, std::uint32_t traffic_class) {
  const std::uint32_t front = take_turn(nic, traffic_class);
  const OpenTransfer& transfer = transfers_[front];
  if (transfer.unsent_packets > 0) {
    append_turn(nic, front);
  } else if (transfer.next_in_flow != none) {
    append_turn(nic, transfer.next_in_flow);
  } else if (transfer.flow != none) {
    transfers_.flow(transfer.flow).last_unsent = none;
  }
}

Arbiter& NicPorts::arbiter(Egress& egress) {
  if (egress.arbiter == none) {
    egress.arbiter = static_cast<std::uint32_t>(arbiters_.size());
    arbiters_.emplace_back();
  }
  return arbiters_[egress.arbiter];
}

void NicPorts::send(NicId nic) {
  if (!resends_.empty() && !send_again(nic)) return;
  const std::uint32_t id = links_.nic_port(nic);
  Port& port = links_[id];
  for (;;) {
    std::uint32_t open = 0;   // classes with something to send and room in their window
    std::uint32_t ready = 0;  // and credit
    for (std::uint32_t left = egress(nic).classes; left != 0; left &= left - 1) {
      const auto traffic_class = static_cast<std::uint32_t>(std::countr_zero(left));
      if (turns(nic, traffic_class).in_flight >= window_packets_) continue;
      open |= 1U << traffic_class;
      if (links_.has_credit(id, traffic_class, 0) || transfers_.loops(turns(nic, traffic_class).first))
        ready |= 1U << traffic_class;
    }
    if (const std::uint32_t changed = (open & ~ready) ^ egress(nic).without_room; changed != 0) [[unlikely]] {
      egress(nic).without_room ^= changed;
      room_waits_.turned(nic.value - first_nic_, changed, links_.now_ps());
    }
    if (open == 0) break;
    if (bus_ != nullptr && waits_for(*bus_, links_, nic)) return;
    const std::uint32_t chosen = ready != 0 && links_.wants_more(port) ? choose_class(nic, ready) : no_class;
    if (chosen == no_class) return wait_for_class(nic, open);
    if (retry_ != nullptr && abandon(nic, chosen)) continue;
    if (transfers_.parks(turns(nic, chosen).first)) {
      take_turn(nic, chosen);
      continue;
    }
    if (connections_.holds_up(nic, turns(nic, chosen).first)) {
      take_turn(nic, chosen);
      continue;
    }
    Holds::Hold* hold = hold_of_front(nic, chosen);
    if (hold != nullptr && !holds_.may_send(*hold, links_.now_ps())) {
      hold_back(nic, chosen, *hold);
    } else {
      send_packet(nic, chosen, hold);
    }
  }
  port.waiting = 0;
}

std::uint32_t NicPorts::choose_class(NicId nic, std::uint32_t ready) {
  const bool one_only = (ready & (ready - 1)) == 0;
  const auto first = static_cast<std::uint32_t>(std::countr_zero(ready));
  if (one_only && !qos_.classes[first].capped()) return first;
  return arbiter(egress(nic)).choose(qos_, ready, links_.now_ps());
}

// Until the earliest instant at which one of these classes may send by its credit and its ceiling.
void NicPorts::wait_for_class(NicId nic, std::uint32_t open) {
  const std::uint32_t id = links_.nic_port(nic);
  std::uint64_t at_ps = never.ps;
  for (std::uint32_t left = open; left != 0; left &= left - 1) {
    const auto traffic_class = static_cast<std::uint32_t>(std::countr_zero(left));
    std::uint64_t class_at_ps =
        transfers_.loops(turns(nic, traffic_class).first) ? links_.now_ps() : links_.credit_at_ps(id, traffic_class, 0);
    if (qos_.classes[traffic_class].capped()) {
      class_at_ps = std::max(class_at_ps, arbiter(egress(nic)).allowed_at_ps(traffic_class));
    }
    at_ps = std::min(at_ps, class_at_ps);
  }
  links_[id].waiting = 1;
  links_.wake(id, at_ps);
}

Holds::Hold* NicPorts::hold_of_front(NicId nic, std::uint32_t traffic_class) {
  if (!holds_.any()) return nullptr;
  Holds::Hold* hold = holds_.find({nic, transfers_[turns(nic, traffic_class).first].target, traffic_class});
  if (hold == nullptr || !holds_.may_send(*hold, links_.now_ps()) || !holds_.is_stale(*hold, links_.now_ps()))
    return hold;
  holds_.end(*hold);
  return nullptr;
}

void NicPorts::hold_back(NicId nic, std::uint32_t traffic_class, Holds::Hold& hold) {
  const std::uint32_t front = take_turn(nic, traffic_class);
  links_.schedule_end_of_hold(links_.nic_port(nic), traffic_class, transfers_[front].target,
                              holds_.park(hold, front, links_.now_ps()));
}

void NicPorts::send_packet(NicId nic, std::uint32_t traffic_class, Holds::Hold* hold) {
  const std::uint32_t id = links_.nic_port(nic);
  Egress& egress = this->egress(nic);
  Turns& line = turns(nic, traffic_class);
  const std::uint32_t transfer_index = line.first;
  OpenTransfer& transfer = transfers_[transfer_index];

  const Bytes payload = std::min(Bytes{transfer.unsent_bytes}, frames_.payload_max());
  transfer.unsent_bytes -= payload.count;
  --transfer.unsent_packets;
  if (transfer.place_under_way == none) {
    transfer.place_under_way =
        under_way_.add(egress.under_way, {name_under_way(transfer.target, traffic_class), transfer_index});
  }

  const std::uint32_t index = packets_.take();
  Packet& packet = packets_[index];
  packet.transfer = transfer_index;
  packet.looped = transfer.target == nic;
  packet.frame_bytes = static_cast<std::uint32_t>(frames_.frame_of(payload).count);
  packet.transmission_ps = frames_.transmission_ps(payload, packet.looped);
  if (transfer.flow != none) {
    Flow& flow = transfers_.flow(transfer.flow);
    flow.in_flight_ps += packet.transmission_ps;
    connections_.sent(nic, transfer.flow, flow, index);
  }
  packet.draw = static_cast<std::uint32_t>(mix(egress.stream + egress.sequence++) >> 32);
  packet.path.switch_hops = 0;
  packet.path.decide_at = 0;
  packet.place = 0;
  packet.kind = PacketKind::data;
  packet.traffic_class = static_cast<std::uint8_t>(traffic_class);
  ++line.in_flight;

  const std::uint64_t now_ps = links_.now_ps();
  if (qos_.classes[traffic_class].capped() || (egress.classes & (egress.classes - 1)) != 0) {
    arbiter(egress).serve(qos_, traffic_class, qos_.classes[traffic_class].assured_ppm, packet.transmission_ps, now_ps);
  }
  if (hold != nullptr) {
    links_.schedule_end_of_hold(id, traffic_class, transfer.target, holds_.sent(*hold, packet.transmission_ps, now_ps));
  }
  if (transfer.meets_bus) bus_->sends(nic, transfer.source_memory, payload, Instant{now_ps});
  const std::uint64_t start_ps = put_out(id, index);
  if (retry_ != nullptr) retry_->sent(index, start_ps);
  pass_turn(nic, traffic_class);
}

std::uint64_t NicPorts::put_out(std::uint32_t id, std::uint32_t index) {
  const Packet& packet = packets_[index];
  Port& port = links_[id];
  const std::uint64_t start_ps = links_.commit(port, packet.transmission_ps);
  if (packet.looped) [[unlikely]] {
    links_.schedule_in_nic(port.peer, start_ps, EventKind::looped_head, index);
    return start_ps;
  }
  links_.take_credit(id, packet.traffic_class, 0, packet.frame_bytes);
  links_.count(port, id, packet.traffic_class, packet.frame_bytes);
  links_.schedule_head_at_switch(port, start_ps, index, packet);
  return start_ps;
}

void NicPorts::prefetch_for_arrival(std::uint32_t port, std::uint32_t index, unsigned stage) const {
  const Packet& packet = packets_[index];
  if (packet.kind == PacketKind::data) {
    if (stage == 1) transfers_.prefetch(packet.transfer);
    return;
  }
  const std::uint32_t nic = links_.nic_of(port).value - first_nic_;
  if (stage != 1) {
    under_way_.prefetch(nics_[nic].under_way);
    return;
  }
  transfers_.prefetch(packet.transfer);
  fetch_line(&turns_[packet.traffic_class][nic]);
  fetch_line(&nics_[nic]);
}

void NicPorts::prefetch_for_wake(std::uint32_t port, unsigned stage) const {
  const std::uint32_t nic = links_.nic_of(port).value - first_nic_;
  if (stage == 1) {
    fetch_line(&nics_[nic]);
    return;
  }
  if (nics_[nic].classes == 0) return;
  const auto traffic_class = static_cast<std::uint32_t>(std::countr_zero(nics_[nic].classes));
  fetch_line(&turns_[traffic_class][nic]);
  links_.prefetch_credit(port, traffic_class, 0);
}

void NicPorts::deliver(std::uint32_t port, std::uint32_t index) {
  Packet& packet = packets_[index];
  if (PacketKind kind; retry_ != nullptr && !retry_->takes(index, kind)) return answer(port, index, packet, kind);
  const std::uint32_t switch_hops = packet.path.switch_hops;
  OpenTransfer& transfer = transfers_[packet.transfer];
  if (transfer.flow != none && retry_ == nullptr) {
    const PacketKind kind = connections_.takes(transfer.flow, index);
    if (refuses(kind)) [[unlikely]]
      return answer(port, index, packet, kind);
  }
  const Bytes payload = frames_.payload_of(packet.frame_bytes);
  totals_.pieces += 1;
  if (!packet.looped) totals_.piece_hops += switch_hops + 2;
  totals_.payload_bytes += payload.count;

  totals_.pieces_of[packet.traffic_class] += 1;
  totals_.bytes_of[packet.traffic_class] += payload.count;

  if (transfer.meets_bus) bus_->took(links_.nic_of(port), transfer.target_memory, payload, Instant{links_.now_ps()});
  answer(port, index, packet);
  if (--transfer.undelivered_packets == 0 && !transfer.failed) sink_->delivered(transfer.handle, switch_hops);
}

void NicPorts::acknowledge(std::uint32_t port, std::uint32_t index) {
  const NicId nic = links_.nic_of(port);
  const Packet packet = packets_[index];
  if (refuses(packet.kind)) [[unlikely]] {
    ++resends_.account(nic).refusals;
    if (packet.kind == PacketKind::sequence_refusal) ++resends_.account(nic).sequence_errors;
    if (retry_ == nullptr) return connections_.refused(index);
  }
  if (retry_ != nullptr && packet.kind != PacketKind::notice && !retry_->settles(index)) return;
  packets_.give_back(index);
  OpenTransfer& transfer = transfers_[packet.transfer];
  const Pair pair{nic, transfer.target, packet.traffic_class};
  const std::uint32_t interval_ps = packet.next;
  if (packet.kind == PacketKind::notice) return tell(pair, holds_.find(pair), interval_ps);
  std::uint32_t parked = none;
  if (transfer.flow != none) {
    Flow& flow = transfers_.flow(transfer.flow);
    parked = transfers_.left_fabric(flow, packet.transmission_ps);
    connections_.settled(nic, transfer.flow, flow, true);
  }
  const bool complete = --transfer.unacknowledged_packets == 0;
  const std::uint32_t handle = transfer.handle;
  const bool failed = transfer.failed;
  if (complete) close(nic, packet.transfer);
  const bool window_was_closed = turns(nic, packet.traffic_class).in_flight-- == window_packets_;
  if (interval_ps != 0 || holds_.any()) {
    Holds::Hold* hold = holds_.find(pair);
    if (hold != nullptr) Holds::acknowledged(*hold);
    tell(pair, hold, interval_ps);
  }
  if (parked != none) append_turn(nic, parked);
  if (window_was_closed || parked != none) send(nic);
  if (complete && !failed) sink_->acknowledged(handle);
}

// Of a hot end-point, or that it is none.
void NicPorts::tell(const Pair& pair, Holds::Hold* hold, std::uint32_t interval_ps) {
  const NicId source = pair.source;
  if (interval_ps != 0) {
    if (hold == nullptr) hold = &holds_.begin(pair, outstanding(pair));
    const std::uint64_t wake_at_ps = holds_.tell(*hold, interval_ps, links_.now_ps());
    links_.schedule_end_of_hold(links_.nic_port(source), pair.traffic_class, pair.target, wake_at_ps);
    return;
  }
  if (hold == nullptr) return;
  std::uint32_t next = holds_.end(*hold);
  if (next == none) return;
  while (next != none) {
    const std::uint32_t transfer = next;
    next = transfers_[transfer].next_turn;
    append_turn(source, transfer);
  }
  send(source);
}

void NicPorts::close(NicId nic, std::uint32_t index) {
  if (const std::uint32_t place = transfers_[index].place_under_way; place != none) {
    transfers_[under_way_.remove(egress(nic).under_way, place)].place_under_way = place;
  }
  transfers_.close(index);
}

std::uint32_t NicPorts::outstanding(const Pair& pair) const {
  std::uint32_t packets = 0;
  under_way_.visit(nics_[pair.source.value - first_nic_].under_way, name_under_way(pair.target, pair.traffic_class),
                   [&](std::uint32_t transfer) { packets += transfers_[transfer].in_flight(); });
  return packets;
}

void NicPorts::end_hold(std::uint32_t port, std::uint32_t traffic_class, NicId target) {
  const NicId nic = links_.nic_of(port);
  const Holds::Over over = holds_.over({nic, target, traffic_class}, links_.now_ps());
  links_.schedule_end_of_hold(port, traffic_class, target, over.wake_at_ps);
  if (over.transfer == none) return;
  append_turn(nic, over.transfer);
  send(nic);
}

bool NicPorts::send_again(NicId nic) {
  const std::uint32_t id = links_.nic_port(nic);
  for (std::uint32_t index = resends_.next_of(nic); index != none; index = resends_.next_of(nic)) {
    Packet& packet = packets_[index];
    if (transfers_[packet.transfer].failed) {
      resends_.pop(nic);
      release(index);
      continue;
    }
    if (turns(nic, packet.traffic_class).in_flight >= window_packets_) return true;
    const bool has_credit = packet.looped || links_.has_credit(id, packet.traffic_class, 0);
    if (!has_credit || !links_.wants_more(links_[id])) {
      links_[id].waiting = 1;
      links_.wake(id, packet.looped ? links_.now_ps() : links_.credit_at_ps(id, packet.traffic_class, 0));
      return false;
    }
    resends_.pop(nic);
    ++resends_.account(nic).sent_again;
    packet.draw = static_cast<std::uint32_t>(mix(egress(nic).stream + egress(nic).sequence++) >> 32);
    packet.path.switch_hops = 0;
    packet.path.decide_at = 0;
    packet.place = 0;
    packet.kind = PacketKind::data;
    ++turns(nic, packet.traffic_class).in_flight;
    const std::uint64_t start_ps = put_out(id, index);
    if (retry_ != nullptr) retry_->sent_again(index, start_ps);
    if (const std::uint32_t flow = transfers_[packet.transfer].flow; flow != none)
      connections_.sent_again(transfers_.flow(flow), index);
  }
  return true;
}

bool NicPorts::abandon(NicId nic, std::uint32_t traffic_class) {
  const std::uint32_t front = turns(nic, traffic_class).first;
  OpenTransfer& transfer = transfers_[front];
  if (!transfer.failed) return false;
  transfer.unacknowledged_packets -= std::exchange(transfer.unsent_packets, 0);
  const bool gone = transfer.unacknowledged_packets == 0;
  pass_turn(nic, traffic_class);
  if (gone) close(nic, front);
  return true;
}

void NicPorts::leave_window(std::uint32_t index) {
  const Packet& packet = packets_[index];
  --turns(transfers_[packet.transfer].source, packet.traffic_class).in_flight;
}

void NicPorts::release(std::uint32_t index) {
  const std::uint32_t transfer_index = packets_[index].transfer;
  const std::uint32_t transmission_ps = packets_[index].transmission_ps;
  packets_.give_back(index);
  OpenTransfer& transfer = transfers_[transfer_index];
  std::uint32_t parked = none;
  if (transfer.flow != none) {
    Flow& flow = transfers_.flow(transfer.flow);
    parked = transfers_.left_fabric(flow, transmission_ps);
    connections_.settled(transfer.source, transfer.flow, flow, false);
  }
  if (parked != none) {
    append_turn(transfer.source, parked);
    links_[links_.nic_port(transfer.source)].waiting = 1;
    links_.wake(links_.nic_port(transfer.source), links_.now_ps());
  }
  const Pair pair{transfer.source, transfer.target, transfer.traffic_class};
  if (Holds::Hold* hold = holds_.find(pair)) Holds::acknowledged(*hold);
  if (--transfer.unacknowledged_packets == 0) close(pair.source, transfer_index);
}

NetworkTotals NicPorts::totals() const {
  NetworkTotals totals = totals_;
  totals.trackers = connections_.totals();
  for (const auto& [nic, account] : resends_.accounts()) totals.faults.pieces_sent_again += account.sent_again;
  if (retry_ == nullptr) return totals;
  totals.faults.network_timeouts = retry_->timeouts();
  totals.faults.pieces_lost = retry_->packets_lost();
  totals.faults.pieces_refused = retry_->packets_refused();
  totals.faults.transfers_failed = retry_->transfers_failed();
  return totals;
}

std::map<NicId, NicAccount> NicPorts::accounts(Instant until) const {
  std::map<NicId, NicAccount> accounts = resends_.accounts();
  room_waits_.add_to(accounts, NicId{first_nic_}, qos_, until);
  return accounts;
}

void NicPorts::wake(std::uint32_t port) {
  if (links_[port].wake_at_ps != links_.now_ps()) return;
  links_[port].wake_at_ps = never.ps;
  send(links_.nic_of(port));
}

}  // namespace dryfly::fabric
