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
                 const Turns& turns, Duration ingress, Duration lead, bool shares)
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
      least_way_(carriage.least_way()),
      turns_(turns) {
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
  const std::uint64_t bytes = bytes_on_the_way(record);
  const Instant ready = answering_.begin({bytes}, now, outlet_of(record).next_answer) + fetch;
  if (!turns_.are_taken(record.leg, bytes)) return offer(message, ready, now);
  listener_.schedule(ready, Kind::leaving, message);
}

void Outlets::leave(std::uint32_t message, Instant now) {
  Record& record = records_[message];
  const std::uint64_t bytes = bytes_on_the_way(record);
  if (record.in_parts || !turns_.are_taken(record.leg, bytes)) return offer(message, now, now);
  const std::uint32_t asking = load_of(message, now).to.value;
  Parts& answer = divide(record, bytes);
  answer.held = std::exchange(answer.left, 0);
  answer.message = message;
  turns_.enter(parts_, static_cast<std::uint32_t>(record.bytes), asking, record.leg);
  advance(answer.queue, now);
}

// One of which something waits in its outlet has more there now.
void Outlets::advance(std::uint32_t queue, Instant now) {
  for (;;) {
    const Turns::Granted granted = turns_.grant(parts_, queue);
    if (granted.parts == no_record) return;
    Parts& answer = parts_[granted.parts];
    if (granted.bytes == answer.left) offer(answer.message, now, now);
  }
}

void Outlets::part_there(std::uint32_t message, Instant now) {
  Parts& answer = parts(records_[message]);
  turns_.end_oldest(answer);
  advance(answer.queue, now);
}

void Outlets::forget_parts(std::uint32_t index, Instant now) {
  const std::uint32_t queue = parts_[index].queue;
  if (queue != Parts::no_queue) turns_.end(parts_[index]);
  parts_.release(index);
  if (queue != Parts::no_queue) advance(queue, now);
}

Parts& Outlets::divide(Record& record, std::uint64_t bytes) {
  if (record.in_parts) return parts(record);
  const std::uint32_t index = parts_.acquire();
  parts_[index] = {.bytes = record.bytes, .left = bytes, .to_come = bytes};
  record.bytes = index;
  record.in_parts = true;
  return parts_[index];
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
    Parts& whole = parts(record);
    load.size.count = std::min(Turns::of_one_part(whole), part_);
    whole.left -= load.size.count;
  }
  if (give(load, record, now)) return;
  if (const std::optional<Carried> times = carriage_.carry(load)) return carried(load, *times);
  Outlet& outlet = outlets_[load.from.value];
  outlet.all.add(start.ps, interval_of(record, command_interval_).ps);
  if (record.in_parts && parts(record).left > 0) offer(message, start, now);
}

void Outlets::occupy(const Load& load, const Record& record, Instant left) {
  Outlet& outlet = outlets_[load.from.value];
  const Duration taken = std::max(left - load.ready, interval_of(record, command_interval_));
  if (load.size <= packet_) outlet.packets.add(load.ready.ps, taken.ps);
  outlet.all.add(load.ready.ps, taken.ps);
}

// A carriage that answers later does so for each part at the instant at which it is there.
void Outlets::tell_turns(const Load& load, Parts& answer, Instant now) {
  if (carriage_.answers_later()) {
    turns_.end_part(answer, load.size.count);
    return advance(answer.queue, now);
  }
  unsigned parts = Turns::arrive(answer, load.size.count);
  if (answer.to_come == 0) --parts;  // the last one ends with the answer
  for (; parts > 0; --parts) listener_.schedule(answer.arrived, Kind::part, load.message);
}

void Outlets::carried(const Load& load, const Carried& times) {
  Record& record = records_[load.message];
  if (!carriage_.answers_later()) occupy(load, record, times.left);
  if (!record.in_parts) return listener_.settled(load.message, times.arrived, times.answered);
  Parts& whole = parts(record);
  whole.arrived = std::max(whole.arrived, times.arrived);
  whole.answered = std::max(whole.answered, times.answered);
  whole.to_come -= load.size.count;
  const bool is_over = whole.to_come == 0;
  if (is_over) listener_.settled(load.message, whole.arrived, whole.answered);
  if (whole.queue != Parts::no_queue) tell_turns(load, whole, times.left);
  if (is_over) return;
  if (whole.left == 0 || carriage_.answers_later()) return;
  Outlet& outlet = outlets_[load.from.value];
  append(records_, outlet.waiting, load.message);
  if (outlet.scheduled) return;
  outlet.scheduled = true;
  listener_.schedule(load.ready + Duration{outlet.all.left_ps(load.ready.ps)}, Kind::nic, load.from.value);
}

}  // namespace dryfly::motif
