#include "core/motif/job/job.hpp"

#include <algorithm>

#include "core/motif/job/lists.hpp"
#include "core/motif/job/wires.hpp"
#include "core/nic/nic_spec.hpp"
#include "core/spec/fields.hpp"
#include "core/spec/slow_parts.hpp"
#include "core/unit/fetch.hpp"
#include "core/unit/random.hpp"

namespace dryfly::motif {
namespace {

constexpr std::uint64_t index_bits = 32;
constexpr std::uint64_t kind_mask = 7;
constexpr std::size_t frame_fetched = 192;  // bytes of a task's frame, where its promise and most of its variables are

[[noreturn]] void stand_still(const LargeVector<Rank>& ranks, std::uint32_t ended) {
  const std::string sentence = "the job stands still: " + std::to_string(ranks.size() - ended) + " of " +
                               std::to_string(ranks.size()) + " ranks have not ended";
  for (const Rank& rank : ranks) {
    if (rank.ended() || rank.posted().empty()) continue;
    const Posted& receive = rank.posted().front();
    const std::string source = receive.source == any_rank ? "any rank" : "rank " + std::to_string(receive.source);
    throw Standstill(sentence + "; rank " + std::to_string(rank.id()) + " waits for a message of " + source +
                     " with tag " + std::to_string(receive.tag) + " that nobody sends");
  }
  throw Standstill(sentence);
}

// That a send or an access of one's own is complete.
Duration cost_of_seeing(const Record& own, const CpuCosts& cpu) {
  if (own.counted) return {};
  return own.leg == Leg::put || own.leg == Leg::read_data ? cpu.completion : cpu.sent;
}

}  // namespace

JobCosts JobCosts::read(const Spec& spec) {
  const NicSpec nic = nic_spec(spec);
  return {.cpu = CpuCosts::read(spec),
          .latencies = HostLatencies::read(spec),
          .pushed_max = nic.pushed_max,
          .injected_max = nic.inline_max,
          .eager_max = nic.eager_max,
          .rendezvous_head = nic.rendezvous_head,
          .packet = nic.framing.payload_max,
          .egress = nic.egress_latency,
          .dma_read = nic.dma_read_latency,
          .ingress = nic.ingress_latency,
          .get = nic.rendezvous_latency,
          .reduction = nic.reduction_latency,
          .reduction_frame = Duration{Wires::read(spec).serialisation_ps(Reductions::packet_bytes)},
          .command_interval = nic.command_interval,
          .answering = nic.answering,
          .get_queues = nic.get_queues,
          .gets_by_nic = nic.gets_by_nic,
          .local_latency = Duration{spec.number(fields::node_local_latency_ps)},
          .copy_rate = Rate{spec.number(fields::node_local_rate_bytes_per_s)},
          .cached = nic.memory.cached,
          .near = nic.memory.near,
          .slow_memories = nic.memory.slow};
}

Frames& frames_of(Rank& rank) { return rank.job().frames_; }

Job::Job(Engine& engine, const Placement& placement, Carriage& carriage, const JobCosts& costs, const Noises& noises,
         std::uint32_t cores)
    : engine_(engine),
      placement_(placement),
      costs_(costs),
      noises_(noises),
      outlets_(placement, carriage, records_, *this, costs.rendezvous_head, costs.packet, costs.command_interval,
               costs.answering, {costs.get_queues, costs.gets_by_nic}, costs.ingress, costs.lead() * 2,
               cores > 1 && costs.near_by_memory),
      reductions_(engine, placement, records_, outlets_, *this,
                  {costs.cpu.rma, costs.latencies.command, costs.egress, costs.ingress, costs.reduction_frame}),
      peer_links_(costs.gpus, placement),
      cached_(costs.near.is_known() ? costs.near.cached(placement.per_node()) : costs.cached) {
  engine_.attach(ComponentClass::workload, *this, 4);
  ranks_.resize(placement.ranks());
  for (std::uint32_t id = 0; id < placement.ranks(); ++id) {
    ranks_[id].job_ = this;
    ranks_[id].id_ = id;
  }
}

void Job::run(const Program& program, std::vector<SentMessage>* sent) {
  sent_ = sent;
  DRYFLY_CHECK(tasks_.empty());
  tasks_.reserve(ranks_.size());
  for (Rank& rank : ranks_) {
    tasks_.push_back(program(rank));
    rank.clock_ = noises_.begin(rank.id_);
    wake_at(rank, rank.clock_);
  }
  outlets_.run(engine_);
  if (ended_ == count()) return;
  for (const Task& task : tasks_) {
    if (task.done()) task.check();
  }
  stand_still(ranks_, ended_);
}

void Job::schedule(Instant at, Kind kind, std::uint32_t index) {
  ++totals_.events;
  engine_.schedule(std::max(at, engine_.now()), static_cast<std::uint64_t>(ComponentClass::workload)
                                                        << component_class_shift |
                                                    static_cast<std::uint64_t>(kind) << index_bits | index);
}

void Job::handle(Event event) {
  const auto index = static_cast<std::uint32_t>(event.key);
  switch (static_cast<Kind>(event.key >> index_bits & kind_mask)) {
    case Kind::rank:
      return driver_ != nullptr ? driver_->wake(ranks_[index]) : wake(ranks_[index]);
    case Kind::arrival:
      return arrive(index);
    case Kind::leaving:
      return outlets_.leave(index, engine_.now());
    case Kind::nic:
      return outlets_.leave_nic(index, engine_.now());
    case Kind::part:
      return outlets_.part_there(index, engine_.now());
  }
}

void Job::prefetch(Event event, unsigned stage) const {
  const auto index = static_cast<std::uint32_t>(event.key);
  const auto kind = static_cast<Kind>(event.key >> index_bits & kind_mask);
  if (kind == Kind::nic) return;
  if (kind == Kind::leaving || kind == Kind::part) {
    if (stage == 0) records_.prefetch(index);
    if (stage == 1) outlets_.prefetch_parts(records_[index]);
    return;
  }
  std::uint32_t id = index;  // of the rank that this is about
  bool sends_on = false;
  if (kind == Kind::arrival) {
    if (stage == 0) return records_.prefetch(index);
    const Record& record = records_[index];
    // The Get of a rendezvous comes to the source, whose NIC sends on.
    sends_on = record.leg == Leg::get;
    id = record.peer == any_rank || sends_on ? record.rank : record.peer;
  }
  const Rank& rank = ranks_[id];
  if (stage == 1) {
    fetch_lines(&rank, sizeof rank);
    outlets_.prefetch_lane(id);
  } else if (stage == 2) {
    outlets_.prefetch_outlet(id);
    if (sends_on) return;
    rank.posted_.prefetch();
    fetch_lines(rank.resumed_.address(), frame_fetched);
  } else if (stage == 3 && kind == Kind::arrival && !sends_on) {
    const std::uint32_t receive = rank.posted_.find_near(records_[index].rank, records_[index].tag);
    if (receive != no_record) records_.prefetch(receive);
  }
}

// A task that has ended gives its frame back at once: others will want it.
void Job::resume(Rank& rank) {
  rank.want_ = Rank::Want::nothing;
  Task& task = tasks_[rank.id_];
  if (rank.resumed_) {
    rank.resumed_.resume();
  } else {
    task.begin();
  }
  // One that waits wants something. To ask the task itself would cost a look at one more place in memory.
  if (rank.want_ != Rank::Want::nothing || !task.done()) return;
  task.check();
  phases_.end(rank.id_, rank.clock_);
  rank.ended_ = true;
  ++ended_;
}

void Job::resume_at(Rank& rank, Instant at) {
  rank.clock_ = at;
  rank.want_ = Rank::Want::time;
  wake_at(rank, at);
}

void Job::wake_at(Rank& rank, Instant at) {
  rank.wake_ = std::max(at, engine_.now());
  schedule(rank.wake_, Kind::rank, rank.id_);
}

// Unless something has come before, and then it has been awake.
void Job::wake(Rank& rank) {
  if (rank.wake_ != engine_.now()) return;
  rank.wake_ = never;
  if (rank.want_ == Rank::Want::any) rank.clock_ = std::max(rank.clock_, engine_.now());
  resume(rank);
}

// Sends and accesses that are over may not be visible yet, and then nobody knows any more when each will be.
void Job::want(Rank& rank, Pending pending) {
  if (pending.record == no_record) return;
  Record& record = records_[pending.record];
  const bool over = record.serial != pending.serial || record.over;
  if (over && pending.own) rank.until_ = std::max(rank.until_, rank.own_seen_);
  if (over || record.awaited) return;
  record.awaited = true;
  ++rank.awaited_;
}

Instant Job::watch(Rank& rank, Pending pending) {
  if (pending.record == no_record) return rank.clock_;
  Record& record = records_[pending.record];
  if (record.serial != pending.serial || record.over) return pending.own ? rank.own_seen_ : rank.received_seen_;
  record.watched = true;
  return never;
}

// One that waits for any of what it watches goes on with the first.
void Job::tell(Rank& rank, std::uint32_t record, Instant visible) {
  rank.watcher_->completed(record, visible);
  if (rank.want_ == Rank::Want::any && visible < rank.wake_) wake_at(rank, std::max(rank.clock_, visible));
}

Pending Job::send(Rank& rank, std::uint32_t to, std::uint32_t tag, Bytes size, Lane lane) {
  DRYFLY_CHECK(to < count());
  ++totals_.messages;
  totals_.bytes += size.count;
  if (sent_ != nullptr) sent_->push_back({rank.id_, to, size});
  if (!costs_.are_gpus_own(placement_, rank.id_, to)) {
    rank.work(size > costs_.pushed_max ? costs_.cpu.send_fetched : costs_.cpu.send);
  }
  const bool near = costs_.copies(placement_, rank.id_, to);
  const bool over = !near && costs_.over_at_once(size);
  const Leg leg = near || size <= costs_.eager_max ? Leg::eager : Leg::request;
  const std::uint32_t message =
      records_.begin({.rank = rank.id_, .peer = to, .tag = tag, .bytes = size.count, .leg = leg});
  records_[message].lane = lane & 7U;
  records_[message].over = over;
  const Pending pending{message, records_[message].serial, true};
  if (near) {
    ++rank.open_;
    copy_on_node(message, rank.clock_);
    return pending;
  }
  outlets_.offer(message, rank.clock_ + costs_.to_link(size), engine_.now());
  if (!over) {
    ++rank.open_;
    return pending;
  }
  if (driver_ == nullptr) return {};
  driver_->completed(rank, message, rank.clock_);
  return pending;
}

Duration Job::copy_time(std::uint32_t source, const Nearness::Way& way, Bytes size) const {
  const bool stays = size.count <= cached_.count;
  const std::uint64_t share =
      stays ? SlowParts::whole_ppb : SlowParts::share_of(costs_.slow_memories, placement_.node_of(source));
  return transmission_time(size, SlowParts::of(stays ? way.cached : way.memory, share));
}

// The source's core copies; the target sees the last byte a latency later.
void Job::copy_on_node(std::uint32_t message, Instant from) {
  const Record& record = records_[message];
  if (costs_.gpus.count > 0) {
    const Instant carried = peer_links_.carry(costs_.gpus, record.rank, record.peer, Bytes{record.bytes}, from);
    schedule(carried + costs_.gpus.step, Kind::arrival, message);
    return finish_own(message, carried);
  }
  const Nearness::Way way = costs_.way(placement_, record.rank, record.peer);
  const Instant copied = from + copy_time(record.rank, way, Bytes{record.bytes});
  schedule(copied + way.latency, Kind::arrival, message);
  finish_own(message, copied);
}

Pending Job::access(Rank& rank, Leg leg, std::uint32_t peer, Bytes size, Told told) {
  DRYFLY_CHECK(peer < count());
  ++totals_.messages;
  totals_.bytes += size.count;
  if (sent_ != nullptr) sent_->push_back({rank.id_, peer, size});
  const Bytes command = leg == Leg::put ? size : Bytes{};
  rank.work(size > costs_.pushed_max ? costs_.cpu.rma_fetched : costs_.cpu.rma);
  ++rank.open_;
  const std::uint32_t message = records_.begin({.rank = rank.id_, .peer = peer, .bytes = size.count, .leg = leg});
  records_[message].counted = told == Told::by_counter;
  const Pending pending{message, records_[message].serial, true};
  if (costs_.copies(placement_, rank.id_, peer)) {
    records_[message].leg = Leg::put;
    copy_on_node(message, rank.clock_);
  } else {
    outlets_.offer(message, rank.clock_ + costs_.to_link(command), engine_.now());
  }
  return pending;
}

Pending Job::receive(Rank& rank, std::uint32_t from, std::uint32_t tag) {
  DRYFLY_CHECK(from < count() || from == any_rank);
  const bool is_gpus_own = costs_.are_gpus_own(placement_, rank.id_, from);
  if (!is_gpus_own) rank.work(costs_.cpu.receive);
  ++rank.open_;
  const std::uint32_t receive = records_.begin({.rank = rank.id_, .peer = from, .tag = tag, .leg = Leg::receive});
  const Pending pending{receive, records_[receive].serial};
  const std::uint32_t message = take_message(records_, rank.unexpected_, from, tag);
  if (message == no_record) {
    rank.posted_.append(frames_, {from, tag, receive});
  } else {
    // An unexpected eager message lies in an overflow buffer; what an expected one needs on arrival is done now.
    const Record& waiting = records_[message];
    const bool lies_here = waiting.leg == Leg::eager && !costs_.copies(placement_, waiting.rank, rank.id_);
    const Duration placing = lies_here ? costs_.ingress : Duration{};
    const Duration command = is_gpus_own ? Duration{} : costs_.latencies.command;  // of a GPU no NIC hears
    match(message, receive, std::max(rank.clock_ + command + placing, engine_.now()));
  }
  return pending;
}

void Job::settled(std::uint32_t message, Instant arrived, Instant answered) {
  const Leg leg = records_[message].leg;
  // The Get of a rendezvous ends in the source's NIC and a part in its engine, and a result is sent on from there.
  const bool in_nic = leg == Leg::get || leg == Leg::result;
  const Duration taken = in_nic ? Duration{} : leg == Leg::part ? costs_.reduction : costs_.ingress;
  schedule(arrived + taken, Kind::arrival, message);
  if ((leg == Leg::eager || leg == Leg::put || leg == Leg::data) && !records_[message].over) {
    // It is answered when the target has matched or placed it (docs/model/nic-protocols.md#acknowledged-when-matched).
    finish_own(message, answered + costs_.ingress + costs_.latencies.completion);
  }
}

void Job::arrive(std::uint32_t message) {
  Record& record = records_[message];
  const Instant now = engine_.now();
  switch (record.leg) {
    case Leg::eager:
    case Leg::request: {
      Rank& target = ranks_[record.peer];
      const std::uint32_t receive = target.posted_.take(record.rank, record.tag);
      if (receive == no_record) return append(records_, target.unexpected_, message);
      return match(message, receive, now);
    }
    case Leg::get:
    case Leg::read_request:
      record.leg = record.leg == Leg::get ? Leg::data : Leg::read_data;
      return outlets_.answer(message, costs_.dma_read, now);
    case Leg::data:
      finish_receive(record.partner, now);
      return forget(message);
    case Leg::read_data:
      ranks_[record.rank].see(now + costs_.latencies.completion);
      finish(ranks_[record.rank], record.awaited, cost_of_seeing(record, costs_.cpu));
      return forget(message);
    case Leg::put:
      return forget(message);
    case Leg::part:
    case Leg::result:
      return reductions_.arrived(message);
    case Leg::receive:
    case Leg::awaited_parts:
    case Leg::awaited_result:
      DRYFLY_UNREACHABLE("what is waited for arrives nowhere");
  }
}

void Job::match(std::uint32_t message, std::uint32_t receive, Instant at) {
  Record& record = records_[message];
  if (record.leg == Leg::eager) {
    finish_receive(receive, at);
    return forget(message);
  }
  record.partner = receive;
  record.leg = Leg::get;
  outlets_.offer(message, at + costs_.get, engine_.now());
}

void Job::forget(std::uint32_t message) {
  outlets_.forget(records_[message], engine_.now());
  records_.end(message);
}

void Job::finish_receive(std::uint32_t receive, Instant at) {
  const Record& record = records_[receive];
  Rank& rank = ranks_[record.rank];
  const bool by_name = record.awaited;
  if (driver_ != nullptr) {
    records_.end(receive);
    return driver_->completed(rank, receive, at + costs_.latencies.completion);
  }
  const bool watched = record.watched;
  const bool is_gpus_own = record.leg == Leg::receive && costs_.are_gpus_own(placement_, record.peer, record.rank);
  const Duration cost = is_gpus_own                        ? Duration{}
                        : record.leg == Leg::receive       ? costs_.cpu.received
                        : record.leg == Leg::awaited_parts ? costs_.cpu.match
                                                           : costs_.cpu.completion;
  records_.end(receive);
  const Instant visible = at + costs_.latencies.completion;
  rank.see(visible);
  finish(rank, by_name, cost);
  if (watched) tell(rank, receive, visible);
}

// A send or write is over for its source; its record stays until it has arrived.
void Job::finish_own(std::uint32_t message, Instant visible) {
  Record& record = records_[message];
  record.over = true;
  Rank& rank = ranks_[record.rank];
  if (driver_ != nullptr) return driver_->completed(rank, message, visible);
  // Often known before it can be seen: its cost comes when it can, or when the next one can.
  const Duration cost = rank.own_cost_;
  const bool is_gpus_own = record.leg == Leg::eager && costs_.are_gpus_own(placement_, record.rank, record.peer);
  rank.own_cost_ = is_gpus_own ? Duration{} : cost_of_seeing(record, costs_.cpu);
  if (rank.waits()) rank.clock_ = std::max(rank.clock_, std::min(rank.own_seen_, visible));
  rank.own_seen_ = std::max(rank.own_seen_, visible);
  if (record.awaited) rank.until_ = std::max(rank.until_, visible);
  const bool watched = record.watched;
  finish(rank, record.awaited, cost);
  if (watched) tell(rank, message, visible);
}

// A rank that waits for messages is at work on each as it comes; one that does not will be, when it waits.
void Job::finish(Rank& rank, bool by_name, Duration cost) {
  --rank.open_;
  if (by_name) --rank.awaited_;
  if (!rank.waits()) {
    rank.owed_ = rank.owed_ + cost;
    return;
  }
  rank.work(cost);
  if (!rank.has_what_it_wants()) return;
  const Instant at = rank.sees_it();
  // One that is far ahead would send before others do that come first.
  if (at > engine_.now() + costs_.lead()) return resume_at(rank, at);
  rank.clock_ = at;
  resume(rank);
}

Instant Job::end() const {
  Instant last{};
  for (const Rank& rank : ranks_) last = std::max(last, rank.clock_);
  return last;
}

JobTotals Job::totals() const {
  JobTotals totals = totals_;
  totals.messages += reductions_.packets();
  totals.records_max = records_.most();
  totals.frame_bytes = frames_.bytes();
  totals.aside = outlets_.brought_aside();
  return totals;
}

std::uint64_t Job::fingerprint() const {
  std::uint64_t print = mix(totals_.messages) ^ totals_.bytes;
  for (const Rank& rank : ranks_) print = mix(print ^ rank.clock_.ps);
  return print;
}

}  // namespace dryfly::motif
