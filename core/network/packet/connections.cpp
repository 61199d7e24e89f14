#include "core/network/packet/connections.hpp"

#include <algorithm>
#include <utility>

#include "core/unit/random.hpp"

namespace dryfly::fabric {

Connections::Connections(const FabricSpec& fabric, std::uint32_t nics, Links& links, SharedPool<Packet>& packets,
                         Transfers& transfers, Resends& resends, ResendOutlet& outlet)
    : spec_(fabric.trackers),
      seed_(fabric.seed),
      links_(links),
      packets_(packets),
      transfers_(transfers),
      resends_(resends),
      outlet_(outlet),
      tables_(spec_.modelled ? nics : 0) {}

bool Connections::lacks_entry(NicId nic, std::uint32_t transfer, std::uint32_t flow_number) {
  expire();
  const Tracked& tracked = transfers_.flow(flow_number).tracked;
  Table& table = tables_[nic.value];
  const bool has_one = tracked.open && !tracked.closing;
  if (has_one || (!tracked.closing && table.sources < spec_.source_connections)) return false;
  ++table.counted.source_waits;
  waiting_[nic].push_back(transfer);
  close_ahead(nic);
  return true;
}

void Connections::begin(NicId nic, std::uint32_t flow_number, Flow& flow) {
  expire();
  if (!flow.tracked.open) return open(nic, flow);
  if (flow.tracked.closes_at_ps != never.ps) end_idle(flow_number, flow);
}

void Connections::open(NicId nic, Flow& flow) {
  Table& table = tables_[nic.value];
  flow.tracked.open = true;
  ++table.counted.connections_opened;
  table.counted.sources_max = std::max<std::uint64_t>(table.counted.sources_max, ++table.sources);
}

void Connections::end_idle(std::uint32_t flow_number, Flow& flow) {
  Tracked& tracked = flow.tracked;
  if (tracked.idle_before != none) transfers_.flow(tracked.idle_before).tracked.idle_behind = tracked.idle_behind;
  if (tracked.idle_behind != none) transfers_.flow(tracked.idle_behind).tracked.idle_before = tracked.idle_before;
  if (last_idle_ == flow_number) last_idle_ = tracked.idle_before;
  if (first_idle_ == flow_number) {
    first_idle_ = tracked.idle_behind;
    first_expiry_ps_ = first_idle_ == none ? never.ps : transfers_.flow(first_idle_).tracked.closes_at_ps;
  }
  tracked.idle_before = tracked.idle_behind = none;
  tracked.closes_at_ps = never.ps;
  --tables_[Transfers::source_of(flow).value].idle;
}

void Connections::turn_idle(NicId nic, std::uint32_t flow_number, Flow& flow) {
  expire();
  Tracked& tracked = flow.tracked;
  tracked.closes_at_ps = links_.now_ps() + spec_.idle.ps + spec_.close.ps;
  tracked.idle_before = last_idle_;
  if (last_idle_ != none) transfers_.flow(last_idle_).tracked.idle_behind = flow_number;
  last_idle_ = flow_number;
  if (first_idle_ == none) {
    first_idle_ = flow_number;
    first_expiry_ps_ = tracked.closes_at_ps;
  }
  Table& table = tables_[nic.value];
  ++table.idle;
  if (!waiting_.empty()) close_ahead(nic);
}

void Connections::close_idle_until(std::uint64_t at_ps) {
  while (first_expiry_ps_ <= at_ps) {
    const std::uint32_t flow_number = first_idle_;
    end_idle(flow_number, transfers_.flow(flow_number));
    close(flow_number);
  }
}

void Connections::close(std::uint32_t flow_number) {
  Flow& flow = transfers_.flow(flow_number);
  Tracked& tracked = flow.tracked;
  Table& target = tables_[Transfers::target_of(flow).value];
  --tables_[Transfers::source_of(flow).value].sources;
  if (tracked.at_target) --target.targets;
  target.results -= std::exchange(tracked.held, 0);
  tracked.acknowledged = tracked.taken;
  tracked.open = tracked.at_target = false;
  if (flow.transfers == 0) transfers_.forget(flow_number);
}

// One idle connection for each transfer that waits, the longest idle first.
void Connections::close_ahead(NicId nic) {
  const auto waiting = waiting_.find(nic);
  if (waiting == waiting_.end()) return;
  Table& table = tables_[nic.value];
  for (std::uint32_t next = first_idle_; table.idle > 0 && table.closing < waiting->second.size();) {
    const std::uint32_t flow_number = next;
    Flow& flow = transfers_.flow(flow_number);
    next = flow.tracked.idle_behind;
    if (Transfers::source_of(flow) != nic) continue;
    end_idle(flow_number, flow);
    flow.tracked.closing = true;
    ++table.closing;
    schedule(nic, links_.now_ps() + spec_.close.ps, {flow_number, true});
  }
}

// The entry goes to whoever has waited longest; of a transfer that was given up only the rest of its turns is left.
void Connections::closed(NicId nic, std::uint32_t flow_number) {
  transfers_.flow(flow_number).tracked.closing = false;
  --tables_[nic.value].closing;
  close(flow_number);
  const auto waiting = waiting_.find(nic);
  for (bool given = false; !given && waiting != waiting_.end() && !waiting->second.empty();) {
    const std::uint32_t transfer = waiting->second.front();
    waiting->second.pop_front();
    given = !transfers_[transfer].failed;
    if (given) open(nic, transfers_.flow(transfers_[transfer].flow));
    outlet_.append_turn(nic, transfer);
  }
  if (waiting != waiting_.end() && waiting->second.empty()) waiting_.erase(waiting);
  outlet_.resume(nic);
}

PacketKind Connections::answer_to(Flow& flow, std::uint32_t packet) {
  Tracked& tracked = flow.tracked;
  if (tracked.refusing) [[unlikely]]
    return refuse(flow, tracked.at_target ? &NicTrackers::sequence_refusals : &NicTrackers::unmatched_refusals);
  Table& target = tables_[Transfers::target_of(flow).value];
  if (!tracked.at_target) {
    expire();
    if (target.targets >= spec_.target_connections) return refuse(flow, &NicTrackers::target_refusals);
    tracked.at_target = true;
    target.counted.targets_max = std::max<std::uint64_t>(target.counted.targets_max, ++target.targets);
  }
  const std::uint32_t held = tracked.taken - cleared_[packet];
  target.results += held - tracked.held;
  tracked.held = held;
  if (target.results >= spec_.results) {
    expire();
    tracked.short_of_results = target.results >= spec_.results;
    if (tracked.short_of_results) return refuse(flow, &NicTrackers::result_refusals);
  }
  ++tracked.taken;
  ++tracked.held;
  if (++target.results > target.counted.results_max) {
    expire();
    target.counted.results_max = std::max<std::uint64_t>(target.counted.results_max, target.results);
  }
  return PacketKind::acknowledgement;
}

PacketKind Connections::refuse(Flow& flow, std::uint64_t NicTrackers::* why) {
  ++(tables_[Transfers::source_of(flow).value].counted.*why);
  flow.tracked.refusing = true;
  return why == &NicTrackers::sequence_refusals ? PacketKind::sequence_refusal : PacketKind::refusal;
}

void Connections::refused(std::uint32_t packet) {
  const OpenTransfer& transfer = transfers_[packets_[packet].transfer];
  const NicId nic = transfer.source;
  Flow& flow = transfers_.flow(transfer.flow);
  transfers_.set_retrying(flow, true);
  outlet_.leave_window(packet);
  Chain& chain = chains_[transfer.flow];
  chain.waiting.insert(chain.waiting.begin() + static_cast<std::ptrdiff_t>(chain.refused_now++), packet);
  review(transfer.flow, flow);
  outlet_.resume(nic);
}

void Connections::progress(std::uint32_t flow_number, Flow& flow) {
  chains_[flow_number].rounds = 0;
  review(flow_number, flow);
}

// Nothing happens before the fate of all that was sent is known.
void Connections::review(std::uint32_t flow_number, Flow& flow) {
  Chain& chain = chains_[flow_number];
  if (chain.waiting.size() != flow.unsettled || chain.scheduled) return;
  if (chain.waiting.empty()) {
    chains_.erase(flow_number);
    return transfers_.set_retrying(flow, false);
  }
  chain.scheduled = true;
  const NicId nic = Transfers::source_of(flow);
  schedule(nic, links_.now_ps() + spec_.handling.ps + pause_ps(nic, ++chain.rounds), {flow_number, false});
}

// At once for some rounds, then doubled from round to round, and up to twice that at random.
std::uint64_t Connections::pause_ps(NicId nic, std::uint32_t rounds) {
  if (rounds <= spec_.rounds_at_once) return 0;
  const std::uint32_t doublings = std::min(rounds - spec_.rounds_at_once - 1, 63U);
  const bool is_longest = spec_.pause.ps > spec_.pause_max.ps >> doublings;
  const std::uint64_t least_ps = is_longest ? spec_.pause_max.ps : spec_.pause.ps << doublings;
  const RandomStream random{seed_, nic.value, Purpose::back_off};
  const std::uint64_t more_ps = random.within(tables_[nic.value].counted.pauses++, least_ps);
  const std::uint64_t pause_ps = least_ps + std::min(more_ps, spec_.pause_max.ps - least_ps);
  longest_pause_ps_ = std::max(longest_pause_ps_, pause_ps);
  return pause_ps;
}

void Connections::try_again(std::uint32_t flow_number) {
  Flow& flow = transfers_.flow(flow_number);
  Chain& chain = chains_.at(flow_number);
  const std::size_t all = chain.waiting.size();
  const std::size_t count = flow.tracked.short_of_results ? std::min<std::size_t>(all, spec_.batch) : all;
  const NicId nic = Transfers::source_of(flow);
  for (std::size_t place = 0; place < count; ++place) resends_.push(nic, chain.waiting[place]);
  chain.waiting.erase(chain.waiting.begin(), chain.waiting.begin() + static_cast<std::ptrdiff_t>(count));
  chain.refused_now = 0;
  chain.scheduled = false;
  flow.tracked.refusing = false;
  flow.routed = false;
  outlet_.resume(nic);
}

std::map<NicId, NicTrackers> Connections::by_nic() const {
  std::map<NicId, NicTrackers> by_nic;
  for (std::uint32_t nic = 0; nic < tables_.size(); ++nic) {
    const NicTrackers& counted = tables_[nic].counted;
    if ((counted.sources_max | counted.targets_max) != 0) by_nic[{nic}] = counted;
  }
  return by_nic;
}

TrackerTotals Connections::totals() const {
  TrackerTotals totals;
  totals.longest_pause_ps = longest_pause_ps_;
  for (const Table& table : tables_) totals.add(table.counted);
  return totals;
}

void Connections::schedule(NicId nic, std::uint64_t at_ps, Due due) {
  due_[nic].emplace(at_ps, due);
  links_.schedule_in_nic(links_.nic_port(nic), at_ps, EventKind::connection_due, 0);
}

void Connections::due(std::uint32_t port) {
  const NicId nic = links_.nic_of(port);
  for (;;) {
    const auto of_nic = due_.find(nic);
    if (of_nic == due_.end() || of_nic->second.begin()->first > links_.now_ps()) return;
    const Due next = of_nic->second.begin()->second;
    of_nic->second.erase(of_nic->second.begin());
    if (of_nic->second.empty()) due_.erase(of_nic);
    next.closes ? closed(nic, next.flow) : try_again(next.flow);
  }
}

}  // namespace dryfly::fabric
