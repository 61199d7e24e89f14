#include "core/network/packet/retry.hpp"

#include <algorithm>

namespace dryfly::fabric {

void Retry::sent(std::uint32_t packet, std::uint64_t start_ps) {
  if (packet >= records_.size()) records_.resize(packet + std::size_t{1});
  Record fresh;
  fresh.sent_ps = start_ps;
  fresh.in_window = true;
  if (const std::uint32_t flow = flow_of(packet); flow != none) fresh.flow_sequence = transfers_.flow(flow).sent++;
  records_[packet] = fresh;
}

void Retry::sent_again(std::uint32_t packet, std::uint64_t start_ps) {
  Record& record = records_[packet];
  record.sent_ps = start_ps;
  record.in_window = true;
}

bool Retry::takes(std::uint32_t packet, PacketKind& answer) {
  Record& record = records_[packet];
  answer = PacketKind::acknowledgement;
  if (record.taken) return false;
  if (const std::uint32_t number = flow_of(packet); number != none) {
    Flow& flow = transfers_.flow(number);
    // What comes behind a packet without a tracker is out of sequence too, and the business of Connections.
    if (record.flow_sequence != flow.expected && !flow.tracked.refusing) {
      ++packets_refused_;
      answer = PacketKind::sequence_refusal;
      return false;
    }
    answer = connections_.takes(number, packet);
    if (refuses(answer)) return false;
    ++flow.expected;
  }
  return record.taken = true;
}

bool Retry::settles(std::uint32_t packet) {
  if (!refuses(packets_[packet].kind)) return true;
  const NicId nic = source_of(packet);
  const std::uint32_t flow = flow_of(packet);
  if (!cancelled(packet) && (transfers_.flow(flow).retrying || transfers_.flow(flow).tracked.refusing)) {
    records_[packet].in_window = false;
    connections_.refused(packet);
    return false;
  }
  leave_window(packet);
  if (cancelled(packet)) {
    give_up({packet});
  } else if (blocked(packet, flow)) {
    recoveries_[flow].waiting[records_[packet].flow_sequence] = packet;
  } else {
    queue(packet);
  }
  outlet_.resume(nic);
  return false;
}

void Retry::lost(std::uint32_t packet) {
  ++packets_lost_;
  const NicId nic = source_of(packet);
  if (cancelled(packet)) {
    leave_window(packet);
    give_up({packet});
    return outlet_.resume(nic);
  }
  if (const std::uint32_t flow = flow_of(packet); flow != none) {
    Recovery& recovery = recoveries_[flow];
    recovery.waiting[records_[packet].flow_sequence] = packet;
    if (recovery.armed) return;
    recovery.armed = true;
  }
  schedule(packet, std::max(links_.now_ps(), records_[packet].sent_ps + schedule_.timeout_ps));
}

// Either its transfer was given up, or its flow, in which what is still on its way has no place any more.
bool Retry::cancelled(std::uint32_t packet) {
  const OpenTransfer& transfer = transfers_[packets_[packet].transfer];
  if (transfer.failed) return true;
  const Record& record = records_[packet];
  if (transfer.flow == none || record.taken) return false;
  return static_cast<std::int32_t>(record.flow_sequence - transfers_.flow(transfer.flow).expected) < 0;
}

// Whether one before it waits for a time-out, so that it would only be refused again.
bool Retry::blocked(std::uint32_t packet, std::uint32_t flow) const {
  const auto recovery = recoveries_.find(flow);
  if (recovery == recoveries_.end()) return false;
  const auto& waiting = recovery->second.waiting;
  return std::any_of(waiting.begin(), waiting.lower_bound(records_[packet].flow_sequence),
                     [&](const auto& other) { return !records_[other.second].taken; });
}

void Retry::schedule(std::uint32_t packet, std::uint64_t at_ps) {
  links_.schedule_in_nic(links_.nic_port(source_of(packet)), at_ps, EventKind::retry_due, packet);
}

void Retry::due(std::uint32_t packet) {
  const NicId nic = source_of(packet);
  const std::uint32_t flow = flow_of(packet);
  if (!records_[packet].delayed) {
    ++timeouts_;
    NicTimeouts& of_nic = resends_.account(nic).timeouts;
    ++(flow != none ? of_nic.ordered : of_nic.unordered);
    // A flow times out as a whole, by its oldest packet.
    std::uint32_t oldest = packet;
    if (flow != none) {
      const auto& waiting = recoveries_.at(flow).waiting;
      for (const auto& [sequence, other] : waiting) leave_window(other);
      oldest = waiting.begin()->second;
    }
    leave_window(packet);
    std::uint64_t delay_ps = 0;
    if ((flow == none && cancelled(packet)) || !retry_left(oldest, delay_ps)) {
      flow == none ? give_up({packet}) : cancel_flow(flow);
      return outlet_.resume(nic);
    }
    if (delay_ps > 0) {
      records_[packet].delayed = true;
      schedule(packet, links_.now_ps() + delay_ps);
      return outlet_.resume(nic);
    }
  }
  records_[packet].delayed = false;
  flow == none ? queue(packet) : send_flow_again(flow);
  outlet_.resume(nic);
}

bool Retry::retry_left(std::uint32_t packet, std::uint64_t& delay_ps) {
  Record& record = records_[packet];
  if (record.timeouts == schedule_.delays_ps.size()) return false;
  delay_ps = schedule_.delays_ps[record.timeouts++];
  return true;
}

void Retry::leave_window(std::uint32_t packet) {
  if (!records_[packet].in_window) return;
  records_[packet].in_window = false;
  outlet_.leave_window(packet);
}

void Retry::queue(std::uint32_t packet) {
  leave_window(packet);
  resends_.push(source_of(packet), packet);
}

void Retry::send_flow_again(std::uint32_t flow) {
  const auto waiting = std::move(recoveries_.at(flow).waiting);
  recoveries_.erase(flow);
  transfers_.flow(flow).routed = false;
  for (const auto& [sequence, packet] : waiting) queue(packet);
}

// The connection is cancelled: what of it has been sent is undeliverable, what has not begins a new one.
void Retry::cancel_flow(std::uint32_t flow) {
  std::vector<std::uint32_t> packets;
  for (const auto& [sequence, packet] : recoveries_.at(flow).waiting) packets.push_back(packet);
  if (!packets.empty()) ++resends_.account(source_of(packets.front())).flows_given_up;
  recoveries_.erase(flow);
  transfers_.flow(flow).expected = transfers_.flow(flow).sent;
  transfers_.flow(flow).routed = false;
  give_up(packets);
}

// The submitters are told last: they may submit anew.
void Retry::give_up(const std::vector<std::uint32_t>& packets) {
  std::vector<Notice> notices;
  for (const std::uint32_t packet : packets) {
    OpenTransfer& transfer = transfers_[packets_[packet].transfer];
    if (!transfer.failed) notices.push_back({transfer.handle, transfer.undelivered_packets == 0});
    transfer.failed = true;
    NicAccount& account = resends_.account(transfer.source);
    ++(transfer.flow != none ? account.ordered_given_up : account.unordered_given_up);
    outlet_.release(packet);
  }
  transfers_failed_ += notices.size();
  for (const Notice& notice : notices) outlet_.undeliverable(notice.handle, notice.delivered);
}

}  // namespace dryfly::fabric
