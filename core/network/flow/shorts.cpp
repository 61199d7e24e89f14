#include "core/network/flow/shorts.hpp"

#include <algorithm>
#include <bit>

namespace dryfly::flow {

Shorts::Shorts(Engine& engine, const fabric::FabricSpec& fabric, std::uint32_t nics, OpenTransfers& transfers,
               Pipes& pipes, ShortsOutlet& outlet, std::uint64_t key_of_waking, std::uint64_t key_of_hold)
    : engine_(engine),
      transfers_(transfers),
      pipes_(pipes),
      outlet_(outlet),
      qos_(fabric.qos),
      key_of_waking_(key_of_waking),
      key_of_hold_(key_of_hold),
      window_packets_(fabric.window_packets),
      holds_back_(fabric.congestion_management),
      hot_ps_(transmission_time(fabric.hot_queue, fabric.rate).ps),
      nics_(nics) {}

void Shorts::add(std::uint32_t index) {
  OpenTransfer& transfer = transfers_[index];
  const NicId nic = transfer.journey.source;
  if (queues_[transfer.traffic_class].empty()) queues_[transfer.traffic_class].resize(nics_.size());
  Queue& line = queue(nic, transfer.traffic_class);
  transfer.next = none;
  if (line.first == none) {
    line.first = index;
    nics_[nic.value].classes |= 1U << transfer.traffic_class;
  } else {
    transfers_[line.last].next = index;
  }
  line.last = index;
  send(nic);
}

void Shorts::wake(NicId nic) {
  if (nics_[nic.value].wake_at_ps != engine_.now().ps) return;
  nics_[nic.value].wake_at_ps = never.ps;
  send(nic);
}

void Shorts::leave_window(NicId nic, std::uint32_t traffic_class, std::uint32_t packets) {
  Queue& line = queue(nic, traffic_class);
  DRYFLY_CHECK(line.in_flight >= packets);
  const bool was_closed = line.in_flight >= window_packets_;
  line.in_flight -= packets;
  if (was_closed && line.first != none) send(nic);
}

void Shorts::wake_at(NicId nic, std::uint64_t at_ps) {
  if (at_ps >= nics_[nic.value].wake_at_ps) return;
  nics_[nic.value].wake_at_ps = at_ps;
  engine_.schedule(Instant{at_ps}, key_of_waking_ | nic.value);
}

void Shorts::send(NicId nic) {
  const std::uint32_t pipe = pipes_.egress(nic);
  for (;;) {
    std::uint32_t ready = 0;
    for (std::uint32_t left = nics_[nic.value].classes; left != 0; left &= left - 1) {
      const auto index = static_cast<std::uint32_t>(std::countr_zero(left));
      if (queue(nic, index).in_flight < window_packets_) ready |= 1U << index;
    }
    if (ready == 0) return;
    if (pipes_[pipe].free_ps > engine_.now().ps) return wake_at(nic, pipes_[pipe].free_ps);
    if (bus_ != nullptr && bus_->may_send(nic) > engine_.now()) return wake_at(nic, bus_->may_send(nic).ps);
    std::uint64_t later_ps = never.ps;
    const std::uint32_t chosen = choose(nic, ready, later_ps);
    if (chosen == fabric::no_class) return wake_at(nic, later_ps);
    send_first(nic, chosen);
  }
}

std::uint32_t Shorts::choose(NicId nic, std::uint32_t ready, std::uint64_t& later_ps) {
  const auto first = static_cast<std::uint32_t>(std::countr_zero(ready));
  if (std::has_single_bit(ready) && !qos_.classes[first].capped()) return first;
  std::uint32_t& number = nics_[nic.value].arbiter;
  if (number == none) {
    number = static_cast<std::uint32_t>(arbiters_.size());
    arbiters_.emplace_back();
  }
  const fabric::Arbiter& arbiter = arbiters_[number];
  const std::uint32_t chosen = arbiter.choose(qos_, ready, engine_.now().ps);
  if (chosen != fabric::no_class) return chosen;
  for (std::uint32_t left = ready; left != 0; left &= left - 1) {
    later_ps = std::min(later_ps, arbiter.allowed_at_ps(static_cast<std::uint32_t>(std::countr_zero(left))));
  }
  return chosen;
}

std::uint32_t Shorts::take_first(NicId nic, std::uint32_t traffic_class) {
  Queue& line = queue(nic, traffic_class);
  const std::uint32_t first = line.first;
  line.first = transfers_[first].next;
  if (line.first == none) nics_[nic.value].classes &= ~(1U << traffic_class);
  return first;
}

void Shorts::send_first(NicId nic, std::uint32_t traffic_class) {
  const std::uint32_t index = take_first(nic, traffic_class);
  if (is_held_back(index)) return;
  const OpenTransfer& transfer = transfers_[index];
  queue(nic, traffic_class).in_flight += transfer.missing;
  const std::uint32_t waiting = nics_[nic.value].classes;
  if (nics_[nic.value].arbiter != none && (qos_.classes[traffic_class].capped() || waiting != 0)) {
    arbiters_[nics_[nic.value].arbiter].serve(qos_, traffic_class, qos_.classes[traffic_class].assured_ppm,
                                              transfer.work_ps, engine_.now().ps);
  }
  if (transfer.by_bus) bus_->sends(nic, transfer.source_memory, transfer.size, engine_.now());
  outlet_.departs(index);
}

// A target is hot for a class when more of it waits there than that, at its part of the link; the sources are let go as
// it has worked off half of it.
bool Shorts::is_held_back(std::uint32_t index) {
  OpenTransfer& transfer = transfers_[index];
  if (!holds_back_ || transfer.reserved || transfer.journey.loops()) return false;
  const std::uint32_t name = hold_name(transfer.journey.target, transfer.traffic_class);
  const std::uint64_t waiting_ps = pipes_.backlog_ps(pipes_.ingress(transfer.journey.target), transfer.traffic_class);
  Hold* hold = holds_.find(name);
  if (hold == nullptr && waiting_ps <= hot_ps_) return false;
  transfer.next = none;
  if (hold != nullptr) {
    transfers_[hold->last].next = index;
    hold->last = index;
    return true;
  }
  holds_[name] = {index, index};
  look_again(name, waiting_ps);
  return true;
}

void Shorts::look_again(std::uint32_t name, std::uint64_t waiting_ps) {
  engine_.schedule(Instant{engine_.now().ps + waiting_ps - hot_ps_ / 2}, key_of_hold_ | name);
}

void Shorts::end_hold(std::uint32_t name) {
  const std::uint32_t pipe = pipes_.ingress({name & most_nic});
  const std::uint32_t traffic_class = name >> nic_bits;
  for (;;) {
    Hold* hold = holds_.find(name);
    if (hold == nullptr) return;
    const std::uint64_t waiting_ps = pipes_.backlog_ps(pipe, traffic_class);
    if (waiting_ps > hot_ps_ / 2) return look_again(name, waiting_ps);
    const std::uint32_t index = hold->first;
    OpenTransfer& transfer = transfers_[index];
    hold->first = transfer.next;
    if (hold->first == none) holds_.erase(*hold);
    pipes_.pass(pipe, traffic_class, transfer.work_ps);
    transfer.reserved = true;
    add(index);
  }
}

}  // namespace dryfly::flow
