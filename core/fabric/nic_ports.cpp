#include "core/fabric/nic_ports.hpp"

#include <utility>

namespace dryfly::fabric {

NicPorts::NicPorts(std::uint32_t nics, const FabricSpec& fabric, Links& links, Pool<Packet>& packets,
                   Transfers& transfers)
    : links_(links),
      packets_(packets),
      transfers_(transfers),
      nics_(nics),
      payload_max_(fabric.payload_max),
      header_(fabric.header),
      rate_(fabric.rate),
      window_packets_(fabric.window_packets),
      frame_max_ps_(static_cast<std::uint32_t>(links.frame_max_ps())),
      ack_ps_(static_cast<std::uint32_t>(transmission_time(fabric.ack, fabric.rate).ps)) {}

void NicPorts::submit(const Transfer& asked) {
  DRYFLY_CHECK(asked.source.value < nics_.size() && asked.target.value < nics_.size());
  DRYFLY_CHECK(asked.source != asked.target);
  const std::uint32_t index = transfers_.open(asked, payload_max_);
  OpenTransfer& transfer = transfers_[index];
  if (transfer.flow != none) {
    Flow& flow = transfers_.flow(transfer.flow);
    const std::uint32_t before = flow.last_unsent;
    flow.last_unsent = index;
    if (before != none) {
      transfers_[before].next_in_flow = index;
      return;
    }
  }
  append_turn(nics_[asked.source.value], index);
  send(asked.source);
}

void NicPorts::append_turn(Egress& egress, std::uint32_t transfer) {
  transfers_[transfer].next_turn = none;
  if (egress.first_turn == none) {
    egress.first_turn = transfer;
  } else {
    transfers_[egress.last_turn].next_turn = transfer;
  }
  egress.last_turn = transfer;
}

// The transfer at the front has sent a packet: it goes behind the others, or its flow's next one does.
void NicPorts::pass_turn(Egress& egress) {
  const std::uint32_t front = egress.first_turn;
  OpenTransfer& transfer = transfers_[front];
  egress.first_turn = transfer.next_turn;
  if (transfer.unsent_packets > 0) {
    append_turn(egress, front);
  } else if (transfer.next_in_flow != none) {
    append_turn(egress, transfer.next_in_flow);
  } else if (transfer.flow != none) {
    transfers_.flow(transfer.flow).last_unsent = none;
  }
}

void NicPorts::send(NicId nic) {
  const std::uint32_t id = links_.nic_port(nic);
  Port& port = links_[id];
  Egress& egress = nics_[nic.value];
  while (has_work(nic) && egress.in_flight < window_packets_) {
    if (!links_.has_credit(id, 0) || !links_.wants_more(port)) {
      port.waiting = 1;
      links_.wake(id, links_.credit_at_ps(id, 0));
      return;
    }
    if (retry_ != nullptr && retry_step(nic)) continue;
    send_packet(nic);
  }
  port.waiting = 0;
}

bool NicPorts::retry_step(NicId nic) {
  Egress& egress = nics_[nic.value];
  const std::uint32_t index = retry_->next_of(nic);
  if (index == none) {
    // The rest of a transfer that was given up takes its turn without a packet.
    const std::uint32_t front = egress.first_turn;
    if (!transfers_[front].failed) return false;
    transfers_[front].unacknowledged_packets -= std::exchange(transfers_[front].unsent_packets, 0);
    const bool gone = transfers_[front].unacknowledged_packets == 0;
    pass_turn(egress);
    if (gone) transfers_.close(front);
    return true;
  }
  retry_->pop(nic);
  Packet& packet = packets_[index];
  if (transfers_[packet.transfer].failed) {
    release(index);
    return true;
  }
  packet.sequence = egress.sequence++;
  packet.place = 0;
  packet.is_acknowledgement = false;
  ++egress.in_flight;
  const std::uint32_t id = links_.nic_port(nic);
  links_.take_credit(id, 0, packet.frame_bytes);
  const std::uint64_t start_ps = links_.commit(links_[id], packet.transmission_ps);
  retry_->sent_again(index, start_ps);
  links_.schedule_head_at_switch(links_[id], start_ps, index);
  return true;
}

void NicPorts::send_packet(NicId nic) {
  const std::uint32_t id = links_.nic_port(nic);
  Port& port = links_[id];
  Egress& egress = nics_[nic.value];
  const std::uint32_t transfer_index = egress.first_turn;
  OpenTransfer& transfer = transfers_[transfer_index];

  const Bytes payload = std::min(Bytes{transfer.unsent_bytes}, payload_max_);
  transfer.unsent_bytes -= payload.count;
  --transfer.unsent_packets;
  if (transfer.flow != none) ++transfers_.flow(transfer.flow).packets_in_flight;

  const std::uint32_t index = packets_.take();
  Packet& packet = packets_[index];
  packet.transfer = transfer_index;
  packet.frame_bytes = static_cast<std::uint32_t>((payload + header_).count);
  packet.transmission_ps = payload == payload_max_
                               ? frame_max_ps_
                               : static_cast<std::uint32_t>(transmission_time(payload + header_, rate_).ps);
  packet.sequence = egress.sequence++;
  packet.place = 0;
  packet.is_acknowledgement = false;
  ++egress.in_flight;

  links_.take_credit(id, 0, packet.frame_bytes);
  const std::uint64_t start_ps = links_.commit(port, packet.transmission_ps);
  links_.schedule_head_at_switch(port, start_ps, index);
  if (retry_ != nullptr) retry_->sent(index, start_ps);
  pass_turn(egress);
}

void NicPorts::deliver(std::uint32_t port, std::uint32_t index) {
  if (retry_ != nullptr && !retry_->takes(index)) return answer(port, index);
  const Packet& packet = packets_[index];
  const std::uint32_t switch_hops = packet.path.switch_hops;
  OpenTransfer& transfer = transfers_[packet.transfer];
  totals_.packets += 1;
  totals_.packet_hops += switch_hops + 2;
  totals_.payload_bytes += packet.frame_bytes - header_.count;
  answer(port, index);
  if (--transfer.undelivered_packets == 0 && !transfer.failed) sink_->delivered(transfer.handle, switch_hops);
}

void NicPorts::acknowledge(std::uint32_t port, std::uint32_t index) {
  if (retry_ != nullptr && !retry_->settles(index)) return;
  const NicId nic = links_.nic_of(port);
  const std::uint32_t transfer_index = packets_[index].transfer;
  packets_.give_back(index);
  OpenTransfer& transfer = transfers_[transfer_index];
  if (transfer.flow != none) {
    Flow& flow = transfers_.flow(transfer.flow);
    if (--flow.packets_in_flight == 0) flow.routed = false;
  }
  const bool complete = --transfer.unacknowledged_packets == 0;
  const std::uint32_t handle = transfer.handle;
  const bool failed = transfer.failed;
  if (complete) transfers_.close(transfer_index);
  const bool window_was_closed = nics_[nic.value].in_flight-- == window_packets_;
  if (window_was_closed) send(nic);
  if (complete && !failed) sink_->acknowledged(handle);
}

void NicPorts::release(std::uint32_t index) {
  const std::uint32_t transfer_index = packets_[index].transfer;
  packets_.give_back(index);
  OpenTransfer& transfer = transfers_[transfer_index];
  if (transfer.flow != none) {
    Flow& flow = transfers_.flow(transfer.flow);
    if (--flow.packets_in_flight == 0) flow.routed = false;
  }
  if (--transfer.unacknowledged_packets == 0) transfers_.close(transfer_index);
}

NetworkTotals NicPorts::totals() const {
  NetworkTotals totals = totals_;
  if (retry_ == nullptr) return totals;
  totals.faults.network_timeouts = retry_->timeouts();
  totals.faults.packets_lost = retry_->packets_lost();
  totals.faults.packets_refused = retry_->packets_refused();
  totals.faults.packets_sent_again = retry_->packets_sent_again();
  totals.faults.transfers_failed = retry_->transfers_failed();
  return totals;
}

void NicPorts::wake(std::uint32_t port) {
  if (links_[port].wake_at_ps != links_.now_ps()) return;
  links_[port].wake_at_ps = never.ps;
  send(links_.nic_of(port));
}

}  // namespace dryfly::fabric
