#include "core/fabric/nic_ports.hpp"

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
  while (egress.first_turn != none && egress.in_flight < window_packets_) {
    if (!links_.has_credit(id, 0) || !links_.wants_more(port)) {
      port.waiting = 1;
      links_.wake(id, links_.credit_at_ps(id, 0));
      return;
    }
    send_packet(nic);
  }
  port.waiting = 0;
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
  links_.schedule_head_at_switch(port, links_.commit(port, packet.transmission_ps), index);
  pass_turn(egress);
}

void NicPorts::deliver(std::uint32_t port, std::uint32_t index) {
  Packet& packet = packets_[index];
  const std::uint32_t switch_hops = packet.path.switch_hops;
  OpenTransfer& transfer = transfers_[packet.transfer];
  totals_.packets += 1;
  totals_.packet_hops += switch_hops + 2;
  totals_.payload_bytes += packet.frame_bytes - header_.count;

  packet.is_acknowledgement = true;
  Port& link = links_[port];
  links_.schedule_head_at_switch(link, links_.commit(link, ack_ps_), index);
  if (--transfer.undelivered_packets == 0) sink_->delivered(transfer.handle, switch_hops);
}

void NicPorts::acknowledge(std::uint32_t port, std::uint32_t index) {
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
  if (complete) transfers_.close(transfer_index);
  const bool window_was_closed = nics_[nic.value].in_flight-- == window_packets_;
  if (window_was_closed) send(nic);
  if (complete) sink_->acknowledged(handle);
}

void NicPorts::wake(std::uint32_t port) {
  if (links_[port].wake_at_ps != links_.now_ps()) return;
  links_[port].wake_at_ps = never.ps;
  send(links_.nic_of(port));
}

}  // namespace dryfly::fabric
