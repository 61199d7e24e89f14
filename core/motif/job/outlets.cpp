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

// Nobody asks when the source hears of it: it has no answer for a program, or was over with its call.
bool can_wait(const Record& record) {
  if (record.in_parts) return false;
  return record.leg == Leg::request || record.leg == Leg::get || record.leg == Leg::read_request ||
         (record.leg == Leg::eager && record.over);
}

// After a load that could not wait so many are carried here: others like it will follow, and to and fro costs more than
// a second core brings. Twice as many each time that it comes again soon.
constexpr std::uint32_t alone_least = 1'000;
constexpr std::uint32_t alone_most = 1'000'000;

bool leads_back(Leg leg) { return leg == Leg::get || leg == Leg::read_data; }

}  // namespace

Outlets::Outlets(const Placement& placement, Carriage& carriage, Records& records, Listener& listener,
                 Bytes rendezvous_head, Bytes packet, Duration command_interval, const nic::Answering& answering,
                 Duration ingress, Duration lead, bool shares)
    : carriage_(carriage),
      records_(records),
      listener_(listener),
      rendezvous_head_(rendezvous_head),
      packet_(packet),
      command_interval_(command_interval),
      answering_(answering),
      ingress_(ingress),
      lead_(carriage.answers_later() ? Duration{} : lead),
      part_(carriage.part().count),
      least_way_(carriage.least_way()) {
  LargeVector<std::uint32_t> usual;
  usual.reserve(placement.ranks());
  for (std::uint32_t rank = 0; rank < placement.ranks(); ++rank) usual.push_back(placement.nic_of(rank).value);
  add_lane(std::move(usual));
  if (shares && least_way_) porter_ = std::make_unique<Porter>(carriage);
}

// With a porter it goes by intervals of half of what any load takes: what is given in one arrives behind the next one,
// which can run while the porter is still at work on it, and must not end before it is through.
void Outlets::run(Engine& engine) {
  if (porter_ == nullptr) return engine.run(never);
  const Duration interval{least_way_->ps / 2};
  for (Instant until = Instant{} + interval;; until = until + interval) {
    const std::uint64_t given_before = porter_->given();
    const std::uint64_t events_before = engine.events_run();
    engine.run(until);
    take(given_before);
    if (engine.events_run() != events_before) continue;
    take(porter_->given());
    const Instant next = engine.next();
    if (next == never) return;
    until = std::max(until, next);
  }
}

void Outlets::take(std::uint64_t least) {
  porter_->take(least, [&](const Load& load, const Carried& times) {
    DRYFLY_CHECK(times.arrived >= load.ready + *least_way_);
    // Messages, which are what can wait in great numbers: their records are not in the cache any more.
    if (load.ordered) return listener_.schedule(times.arrived + ingress_, Kind::arrival, load.message);
    listener_.settled(load.message, times.arrived, times.answered);
  });
}

bool Outlets::give(const Load& load, const Record& record, Instant now) {
  if (porter_ == nullptr) return false;
  if (alone_ > 0) {
    --alone_;
    return false;
  }
  if (!can_wait(record) || load.ready < now) {
    take(porter_->given());
    const bool soon = porter_->given() - given_before_ < alone_next_;
    alone_next_ = soon ? std::min(alone_next_ * 2, alone_most) : alone_least;
    alone_ = alone_next_;
    given_before_ = porter_->given();
    return false;
  }
  DRYFLY_CHECK(load.from != load.to);
  if (!porter_->has_room()) take(porter_->given() - Porter::places / 2);
  Load later = load;
  occupy(load, record, carriage_.leave(later));
  porter_->give(later);
  return true;
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

Outlets::Outlet& Outlets::outlet_of(const Record& record) {
  return outlets_[lanes_[record.lane][leads_back(record.leg) ? record.peer : record.rank]];
}

void Outlets::offer(std::uint32_t message, Instant ready, Instant now) {
  Record& record = records_[message];
  const std::uint64_t bytes = bytes_on_the_way(record);
  // A payload in parts has no leg behind the one that is divided.
  if (bytes > part_) divide(record, bytes);
  Outlet& outlet = outlet_of(record);
  const bool overtakes = bytes <= packet_.count && !carriage_.answers_later();
  const Instant start = ready + Duration{(overtakes ? outlet.packets : outlet.all).left_ps(ready.ps)};
  if (outlet.waiting.first == no_record || overtakes) {
    if (start <= now + lead_) return depart(message, start, now);
    if (start == ready || overtakes) return listener_.schedule(start, Kind::leaving, message);
  }
  append(records_, outlet.waiting, message);
  if (outlet.scheduled) return;
  outlet.scheduled = true;
  listener_.schedule(start, Kind::nic, static_cast<std::uint32_t>(&outlet - outlets_.data()));
}

void Outlets::answer(std::uint32_t message, Duration fetch, Instant now) {
  const Record& record = records_[message];
  offer(message, answering_.begin({bytes_on_the_way(record)}, now, outlet_of(record).next_answer) + fetch, now);
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
  depart(message, now, now);
  if (outlet.waiting.first == no_record || outlet.scheduled) return;
  outlet.scheduled = true;
  listener_.schedule(now + Duration{outlet.all.left_ps(now.ps)}, Kind::nic, nic);
}

void Outlets::depart(std::uint32_t message, Instant start, Instant now) {
  Load load = load_of(message, start);
  Record& record = records_[message];
  if (record.in_parts) {
    Parts& whole = parts_[static_cast<std::uint32_t>(record.bytes)];
    load.size.count = std::min(whole.left, part_);
    whole.left -= load.size.count;
  }
  if (give(load, record, now)) return;
  if (const std::optional<Carried> times = carriage_.carry(load)) return carried(load, *times);
  Outlet& outlet = outlets_[load.from.value];
  outlet.all.add(start.ps, interval_of(record, command_interval_).ps);
}

void Outlets::occupy(const Load& load, const Record& record, Instant left) {
  Outlet& outlet = outlets_[load.from.value];
  const Duration taken = std::max(left - load.ready, interval_of(record, command_interval_));
  if (load.size <= packet_) outlet.packets.add(load.ready.ps, taken.ps);
  outlet.all.add(load.ready.ps, taken.ps);
}

void Outlets::carried(const Load& load, const Carried& times) {
  Record& record = records_[load.message];
  if (!carriage_.answers_later()) occupy(load, record, times.left);
  if (!record.in_parts) return listener_.settled(load.message, times.arrived, times.answered);
  Parts& whole = parts_[static_cast<std::uint32_t>(record.bytes)];
  whole.arrived = std::max(whole.arrived, times.arrived);
  whole.answered = std::max(whole.answered, times.answered);
  if (whole.left == 0) return listener_.settled(load.message, whole.arrived, whole.answered);
  Outlet& outlet = outlets_[load.from.value];
  append(records_, outlet.waiting, load.message);
  if (outlet.scheduled) return;
  outlet.scheduled = true;
  listener_.schedule(load.ready + Duration{outlet.all.left_ps(load.ready.ps)}, Kind::nic, load.from.value);
}

}  // namespace dryfly::motif
