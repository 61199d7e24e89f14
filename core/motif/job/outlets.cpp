#include "core/motif/job/outlets.hpp"

#include <algorithm>

namespace dryfly::motif {
namespace {

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
  nic_of_.reserve(placement.ranks());
  std::uint32_t most = 0;
  for (std::uint32_t rank = 0; rank < placement.ranks(); ++rank) {
    nic_of_.push_back(placement.nic_of(rank).value);
    most = std::max(most, nic_of_.back());
  }
  outlets_.resize(std::size_t{most} + 1);
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
  const NicId rank{nic_of_[record.rank]};
  const NicId peer{nic_of_[record.peer]};
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
  Outlet& outlet = outlets_[nic_of_[leads_back(record.leg) ? record.peer : record.rank]];
  const bool overtakes = bytes <= packet_.count && !carriage_.answers_later();
  const Instant start = ready + Duration{(overtakes ? outlet.packets : outlet.all).left_ps(ready.ps)};
  if (outlet.waiting.first == no_record || overtakes) {
    if (start <= now + lead_) return depart(message, start);
    if (start == ready) return listener_.schedule_leaving(ready, message);
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
  outlet.all.add(start.ps, command_interval_.ps);
}

void Outlets::carried(const Load& load, const Carried& times) {
  Record& record = records_[load.message];
  Outlet& outlet = outlets_[load.from.value];
  if (!carriage_.answers_later()) {
    const Duration taken = std::max(times.left - load.ready, command_interval_);
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
