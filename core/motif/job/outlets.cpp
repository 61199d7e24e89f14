#include "core/motif/job/outlets.hpp"

#include <algorithm>
#include <utility>

namespace dryfly::motif {
namespace {

constexpr std::size_t lanes_most = 8;  // Record::lane

// A NIC sends results by itself, without commands.
Duration interval_of(const Record& record, Duration of_commands) {
  return record.leg == Leg::result ? Duration{} : of_commands;
}

bool leads_back(Leg leg) { return leg == Leg::get || leg == Leg::read_data; }

}  // namespace

Outlets::Outlets(const Placement& placement, Carriage& carriage, Records& records, Listener& listener,
                 Bytes rendezvous_head, Bytes packet, Duration command_interval, Duration lead)
    : carriage_(carriage),
      records_(records),
      listener_(listener),
      rendezvous_head_(rendezvous_head),
      packet_(packet),
      command_interval_(command_interval),
      lead_(carriage.answers_later() ? Duration{} : lead),
      part_(carriage.part().count) {
  LargeVector<std::uint32_t> usual;
  usual.reserve(placement.ranks());
  for (std::uint32_t rank = 0; rank < placement.ranks(); ++rank) usual.push_back(placement.nic_of(rank).value);
  add_lane(std::move(usual));
}

void Outlets::add_lane(LargeVector<std::uint32_t> nics) {
  std::size_t needed = outlets_.size();
  for (const std::uint32_t nic : nics) needed = std::max(needed, std::size_t{nic} + 1);
  outlets_.resize(needed);
  lanes_.push_back(std::move(nics));
}

std::uint8_t Outlets::add_lane(const Placement& placement, const std::vector<std::uint32_t>& nics) {
  DRYFLY_CHECK(!nics.empty() && lanes_.size() < lanes_most);
  LargeVector<std::uint32_t> chosen;
  chosen.reserve(placement.ranks());
  for (std::uint32_t rank = 0; rank < placement.ranks(); ++rank) {
    chosen.push_back(placement.nic_of(rank, nics).value);
  }
  add_lane(std::move(chosen));
  return static_cast<std::uint8_t>(lanes_.size() - 1);
}

std::uint64_t Outlets::bytes_on_the_way(const Record& record) const {
  const std::uint64_t bytes = payload(record).count;
  switch (record.leg) {
    case Leg::get:
    case Leg::read_request:
      return 0;
    case Leg::request:
      return std::min(bytes, rendezvous_head_.count);
    case Leg::data:
      return bytes - std::min(bytes, rendezvous_head_.count);
    default:
      return bytes;
  }
}

Load Outlets::load_of(std::uint32_t message, Instant start) const {
  const Record& record = records_[message];
  const LargeVector<std::uint32_t>& nic_of = lanes_[record.lane];
  const NicId rank{nic_of[record.rank]};
  const NicId peer{nic_of[record.peer]};
  const std::uint64_t bytes = bytes_on_the_way(record);
  const bool back = leads_back(record.leg);
  return {.from = back ? peer : rank,
          .to = back ? rank : peer,
          .size = {bytes},
          .ready = start,
          .message = message,
          .ordered = record.leg == Leg::eager || record.leg == Leg::request};
}

void Outlets::offer(std::uint32_t message, Instant ready, Instant now) {
  Record& record = records_[message];
  const std::uint64_t bytes = bytes_on_the_way(record);
  // A payload in parts has no leg behind the one that is divided.
  if (bytes > part_) divide(record, bytes);
  Outlet& outlet = outlets_[lanes_[record.lane][leads_back(record.leg) ? record.peer : record.rank]];
  const bool overtakes = bytes <= packet_.count && !carriage_.answers_later();
  const Instant start = ready + Duration{(overtakes ? outlet.packets : outlet.all).left_ps(ready.ps)};
  if (outlet.waiting.first == no_record || overtakes) {
    if (start <= now + lead_) return depart(message, start);
    if (start == ready || overtakes) return listener_.schedule_leaving(start, message);
  }
  append(records_, outlet.waiting, message);
  if (outlet.scheduled) return;
  outlet.scheduled = true;
  listener_.schedule_nic(start, static_cast<std::uint32_t>(&outlet - outlets_.data()));
}

void Outlets::divide(Record& record, std::uint64_t bytes) {
  if (record.in_parts) return;
  const std::uint32_t parts = parts_.acquire();
  parts_[parts] = {.bytes = record.bytes, .left = bytes};
  record.bytes = parts;
  record.in_parts = true;
}

void Outlets::leave_nic(std::uint32_t nic, Instant now) {
  Outlet& outlet = outlets_[nic];
  outlet.scheduled = false;
  const std::uint32_t message = outlet.waiting.first;
  if (message == no_record) return;
  outlet.waiting.first = records_[message].next;
  depart(message, now);
  if (outlet.waiting.first == no_record || outlet.scheduled) return;
  outlet.scheduled = true;
  listener_.schedule_nic(now + Duration{outlet.all.left_ps(now.ps)}, nic);
}

void Outlets::depart(std::uint32_t message, Instant start) {
  Load load = load_of(message, start);
  Record& record = records_[message];
  if (record.in_parts) {
    Parts& whole = parts_[static_cast<std::uint32_t>(record.bytes)];
    load.size.count = std::min(whole.left, part_);
    whole.left -= load.size.count;
  }
  if (const std::optional<Carried> times = carriage_.carry(load)) return carried(load, *times);
  Outlet& outlet = outlets_[load.from.value];
  outlet.all.add(start.ps, interval_of(record, command_interval_).ps);
}

void Outlets::carried(const Load& load, const Carried& times) {
  Record& record = records_[load.message];
  Outlet& outlet = outlets_[load.from.value];
  if (!carriage_.answers_later()) {
    const Duration taken = std::max(times.left - load.ready, interval_of(record, command_interval_));
    if (load.size <= packet_) outlet.packets.add(load.ready.ps, taken.ps);
    outlet.all.add(load.ready.ps, taken.ps);
  }
  if (!record.in_parts) return listener_.settled(load.message, times.arrived, times.answered);
  Parts& whole = parts_[static_cast<std::uint32_t>(record.bytes)];
  whole.arrived = std::max(whole.arrived, times.arrived);
  whole.answered = std::max(whole.answered, times.answered);
  if (whole.left == 0) return listener_.settled(load.message, whole.arrived, whole.answered);
  append(records_, outlet.waiting, load.message);
  if (outlet.scheduled) return;
  outlet.scheduled = true;
  listener_.schedule_nic(load.ready + Duration{outlet.all.left_ps(load.ready.ps)}, load.from.value);
}

}  // namespace dryfly::motif
