#include "conductor/conductor.hpp"

#include <sched.h>

#include <algorithm>
#include <map>
#include <thread>
#include <utility>

#include "core/nic/nic_spec.hpp"
#include "core/spec/fields.hpp"
#include "wire/futex.hpp"

namespace dryfly {

namespace {

// Virtual time starts at the first multiple of this that lies behind everything that happened during MPI_Init.
constexpr std::uint64_t start_grid_ps = 10'000'000'000;  // 10 ms

constexpr long nap_ns = 50'000'000;
constexpr int spin_steps = 200;

// Those that this process may use, not those that the box has: a container or a batch job may confine it to one.
std::uint32_t processors_allowed() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return std::max(1U, std::thread::hardware_concurrency());
  return static_cast<std::uint32_t>(CPU_COUNT(&allowed));
}

}  // namespace

Conductor::Conductor(const Spec& spec, const std::string& channel, const std::string& result_path, StatusLine status,
                     StatusLine attach_line, int life_line, const std::string& record_folder)
    : topology_(spec),
      network_(engine_, topology_, spec),
      storage_(storage_of(spec)),
      segment_(spec),
      ranks_(segment_.rank_count()),
      command_latency_{spec.number(fields::nic_command_latency_ps)},
      completion_latency_{spec.number(fields::nic_completion_latency_ps)},
      translator_(engine_, nics_, topology_, segment_, ranks_, *this, {command_latency_, completion_latency_},
                  nic_sockets(spec)),
      nics_(engine_, storage_ ? static_cast<Carrier&>(storage_->network()) : network_, translator_.host(),
            nic_spec(spec)),
      bounds_(segment_.rank_count()),
      batons_(ranks_, bounds_, Duration{spec.number(fields::node_local_latency_ps)},
              segment_.header().nodes_share_memory != 0),
      spec_(spec),
      report_(spec, result_path,
              {engine_, topology_, network_, nics_, storage_.get(), segment_, ranks_, translator_.tally()}),
      record_folder_(record_folder),
      status_(status),
      attach_line_(attach_line),
      door_(channel, life_line,
            [this] {
              segment_.header().doorbell.fetch_add(1);
              wire::futex_wake(segment_.header().doorbell);
            }),
      processors_(processors_allowed()),
      stalls_(segment_.rank_count()) {
  for (std::uint32_t index = 0; index < ranks_.size(); ++index) {
    Rank& rank = ranks_[index];
    rank.id = RankId{index};
    rank.page = &segment_.page(rank.id);
    rank.commands.ring = segment_.command_ring(rank.id);
    rank.events.ring = segment_.event_ring(rank.id);
    rank.node = NodeId{
        static_cast<std::uint32_t>(spec.number_between(0, topology_.node_count() - 1, fields::run_rank_node, {index}))};
    rank.nic_index = static_cast<std::uint32_t>(
        spec.number_between(0, topology_.nics_per_node(rank.node) - 1, fields::run_rank_nic, {index}));
    if (spec.has(fields::run_rank_socket, {index})) rank.socket = spec.small(fields::run_rank_socket, {index});
    batons_.seat(rank);
  }
  spinner_.share_with(segment_.rank_count());
  last_check_ = WallClock::now();
  if (served()) {
    open_fabric();
  } else {
    require_routes();
  }
  status_.say("ready");
}

void Conductor::require_routes() const {
  std::map<NicId, const Rank*> user_of;
  for (const Rank& rank : ranks_) user_of.try_emplace(topology_.nic_of(rank.node, rank.nic_index), &rank);
  std::vector<NicId> nics;
  for (const auto& [nic, rank] : user_of) nics.push_back(nic);
  if (const auto drained = network_.drained(nics)) {
    const auto& [nic, entry] = *drained;
    const std::string where = entry + ".where";
    throw SpecError(entry + ": a drain of `" + spec_.text(TextField{{where}}) + "` takes out NIC n" +
                    std::to_string(nic.value) + " of rank " + std::to_string(user_of.at(nic)->id.value) +
                    ", for which there is no other way: accepted are drains of what no rank hangs on; to lose it "
                    "nevertheless, write a loss or a flap");
  }
  const auto cut_off = network_.cut_off(nics);
  if (!cut_off) return;
  const auto [from, to] = *cut_off;
  throw SpecError("what fabric.down and fabric.cabling take away leaves no way from NIC n" +
                  std::to_string(from.value) + " (rank " + std::to_string(user_of.at(from)->id.value) + ") to NIC n" +
                  std::to_string(to.value) + " (rank " + std::to_string(user_of.at(to)->id.value) + ")");
}

void Conductor::run() {
  while (!door_.over()) {
    bool progress = false;
    if (door_.has_visits()) {
      serve_visits();
      progress = true;
    }
    progress |= look_at_attention();
    progress |= advance();
    progress |= release_ready();
    if (progress) {
      last_progress_ = watched_;
    } else {
      check_deadlock();
      wait_for_work();
    }
  }
}

// --- gates --------------------------------------------------------------------------------------------------------

bool Conductor::look_at_attention() {
  bool any = false;
  auto& words = segment_.header().attention;
  const std::size_t word_count = (ranks_.size() + 63) / 64;
  for (std::size_t word = 0; word < word_count; ++word) {
    if (words[word].load(std::memory_order_relaxed) == 0) continue;
    std::uint64_t bits = words[word].exchange(0, std::memory_order_seq_cst);
    any = any || bits != 0;
    for (; bits != 0; bits &= bits - 1) {
      const auto bit = static_cast<std::size_t>(__builtin_ctzll(bits));
      look(ranks_[word * 64 + bit]);
    }
  }
  return any;
}

void Conductor::look(Rank& rank) {
  const std::uint32_t ticket = rank.page->gate_request.load(std::memory_order_acquire);
  if (rank.page->watches_memory.load(std::memory_order_relaxed) != 0) memory_watched_ = true;
  translator_.drain(rank);
  if (rank.process.cut_off) return;
  if (!rank.events.copy_waiters.empty()) flush_waiters(rank);
  if (const std::uint32_t ends = rank.page->baton_ends.load(std::memory_order_acquire); ends != rank.baton.ends) {
    rank.baton.ends = ends;
    batons_.give_back(rank, rank.page->baton_end_ps, true);
  }
  if (ticket == rank.gate.ticket) return;
  rank.gate.ticket = ticket;
  open_gate(rank);
}

void Conductor::open_gate(Rank& rank) {
  rank.gate.at_ps = rank.page->gate_at_ps;
  rank.gate.deadline_ps = wire::far_future;
  if (rank.state == RankState::away) rejoin(rank);
  flush(rank);
  switch (rank.page->gate_kind) {
    case wire::GateKind::poll:
      ++gates_.polls;
      if (!started_ || ended_) return release(rank, rank.gate.at_ps);
      return gate_wait(rank, RankState::polling, rank.gate.at_ps);
    case wire::GateKind::wait:
      ++gates_.waits;
      if (takes_turns(rank)) return gate_wait_in_turn(rank, RankState::waiting);
      return gate_wait(rank, RankState::waiting, never.ps);
    case wire::GateKind::wait_until:
      ++gates_.waits;
      rank.gate.deadline_ps = rank.page->gate_deadline_ps;
      if (!started_ || ended_) return release(rank, rank.gate.at_ps);
      if (takes_turns(rank)) return gate_wait_in_turn(rank, RankState::waiting);
      return gate_wait(rank, RankState::timed, rank.gate.deadline_ps);
    case wire::GateKind::start:
      return gate_start(rank);
    case wire::GateKind::end:
      return gate_end(rank);
    case wire::GateKind::meet:
      return gate_meet(rank);
    case wire::GateKind::outside:
      rank.gate.outside = true;
      return release(rank, rank.gate.at_ps);
    case wire::GateKind::inside:
      rank.gate.outside = false;
      return release(rank, rank.gate.at_ps);
    case wire::GateKind::baton:
      if (!takes_turns(rank)) return release(rank, rank.gate.at_ps);
      set_state(rank, RankState::queued, rank.gate.at_ps);
      return batons_.give_back(rank, rank.gate.at_ps, rank.page->gate_has_acted != 0);
    case wire::GateKind::baton_back:
    case wire::GateKind::drain:
    case wire::GateKind::none:
      return release(rank, rank.gate.at_ps);
  }
}

// A rank that was outside virtual time goes on where nothing it does can reach its NIC in the network's past.
void Conductor::rejoin(Rank& rank) {
  const std::uint64_t least = processed_until_.ps - std::min(processed_until_.ps, lookahead_ps());
  if (rank.gate.at_ps >= least) return;
  rank.gate.at_ps = least;
  rank.gate.rejoin_ps = least;
}

void Conductor::gate_wait(Rank& rank, RankState state, std::uint64_t bound) {
  set_state(rank, state, bound);
  // Events that came while it was running are in the ring or, held back, at the front of the overflow.
  const bool in_ring = rank.events.head != rank.page->event_tail.load(std::memory_order_acquire);
  if (state == RankState::polling) return;
  if (in_ring) {
    bounds_.set(rank.id, std::min(bound, rank.gate.at_ps));
    ready_.push_back(rank.id);
  } else if (!rank.events.overflow.empty()) {
    bounds_.set(rank.id, std::min(bound, std::max(rank.gate.at_ps, rank.events.overflow.front().event.at_ps)));
  }
}

void Conductor::gate_start(Rank& rank) {
  if (started_) return release(rank, rank.gate.at_ps);
  // Until all are there it keeps the state `starting`; start_all() releases it.
  if (++starting_ == ranks_.size()) start_all();
}

void Conductor::start_all() {
  engine_.run(never);
  start_ = Instant{(engine_.now().ps / start_grid_ps + 1) * start_grid_ps};
  network_.restart(start_);
  nics_.restart();
  processed_until_ = start_;
  started_ = true;
  translator_.tally().start(start_);
  start_recording();
  if (storage_) storage_->start(start_);
  report_.start(start_);
  status_.say("started");
  for (Rank& rank : ranks_) {
    flush(rank);
    rank.gate.at_ps = start_.ps;
    release(rank, start_.ps);
  }
}

void Conductor::start_recording() {
  if (record_folder_.empty()) return;
  recorder_ = std::make_unique<RunRecorder>(record_folder_, topology_, start_);
  network_.observe(&recorder_->links());
  translator_.tally().tell(recorder_.get());
}

void Conductor::finish_recording() {
  if (!recorder_) return;
  network_.observe(nullptr);
  translator_.tally().tell(nullptr);
  if (!recorder_->finish()) status_.say("warn the recording of the network cannot be written to " + record_folder_);
  recorder_.reset();
}

void Conductor::gate_end(Rank& rank) {
  if (ended_ || served()) {
    rank.page->all_ended.store(1);
    return release(rank, rank.gate.at_ps);
  }
  if (!rank.gate.in_finalize) {
    rank.gate.in_finalize = true;
    rank.gate.end_ps = rank.gate.at_ps;
    ++ending_;
  }
  if (takes_turns(rank)) {
    gate_wait_in_turn(rank, RankState::ending);
  } else {
    gate_wait(rank, RankState::ending, never.ps);
  }
  if (ending_ == ranks_.size()) end_all();
}

void Conductor::end_all() {
  ended_ = true;
  translator_.tally().stop();
  finish_recording();
  if (const std::string trouble = report_.write(gates_); !trouble.empty()) status_.say("fatal " + trouble);
  network_.end_faults();
  if (storage_) storage_->stop();
  status_.say("ended");
  for (Rank& rank : ranks_) {
    if (rank.state == RankState::gone) continue;
    rank.page->all_ended.store(1);
    flush(rank);
    // A rank that has come to MPI_Finalize may be at another gate: it serves the others' messages meanwhile.
    const bool at_gate = rank.state != RankState::running && rank.state != RankState::away;
    if (at_gate) release(rank, rank.gate.at_ps);
    set_state(rank, RankState::ended, never.ps);
  }
}

// --- time ---------------------------------------------------------------------------------------------------------

void Conductor::set_state(Rank& rank, RankState state, std::uint64_t bound) {
  if (rank.state == RankState::running) --running_;
  if (rank.state == RankState::polling) by_instant_.erase({rank.gate.at_ps, rank.id.value});
  if (rank.state == RankState::timed) by_instant_.erase({rank.gate.deadline_ps, rank.id.value});
  rank.state = state;
  if (served()) rank.page->away.store(state == RankState::away ? 1 : 0, std::memory_order_seq_cst);
  if (state == RankState::running) ++running_;
  if (state == RankState::polling) by_instant_.insert({rank.gate.at_ps, rank.id.value});
  if (state == RankState::timed) by_instant_.insert({rank.gate.deadline_ps, rank.id.value});
  bounds_.set(rank.id, bound);
}

// The smallest bound, after a fresh look at the clock of the rank that has it.
std::uint64_t Conductor::settle_bounds() {
  for (;;) {
    Rank& rank = ranks_[bounds_.top().value];
    const std::uint64_t bound = bounds_.least();
    if (rank.state != RankState::running) return bound;
    const std::uint64_t clock = rank.page->clock_ps.load(std::memory_order_seq_cst);
    translator_.drain(rank);
    if (rank.process.cut_off) continue;
    if (clock <= bound) return bound;
    bounds_.set(rank.id, clock);
  }
}

bool Conductor::advance() {
  const std::uint64_t bound = settle_bounds();
  const bool all_wait = bound == never.ps;
  limit_ = all_wait ? limit_of_waiting() : Instant{bound + lookahead_ps()};
  if (served()) limit_ = paced(limit_);
  const std::uint64_t before = engine_.events_run();
  if (engine_.next() < limit_) engine_.run(limit_);
  if (storage_) storage_->network().stop_engine_when_idle(false);
  const bool ran = engine_.events_run() != before;
  const Instant done = limit_ == never || (storage_ && all_wait) ? engine_.now() : limit_;
  if (done > processed_until_) processed_until_ = done;
  limit_ = {};
  return ran;
}

bool Conductor::release_ready() {
  bool any = pass_batons();
  for (const RankId id : std::exchange(ready_, {})) {
    Rank& rank = ranks_[id.value];
    if (takes_turns(rank)) continue;
    const bool waits =
        rank.state == RankState::waiting || rank.state == RankState::timed || rank.state == RankState::ending;
    if (!waits || rank.events.head == rank.page->event_tail.load(std::memory_order_acquire)) continue;
    if (memory_watched_ && bounds_.bound(id) > processed_until_.ps) {
      ready_.push_back(id);  // memory has yet to come to that instant
      continue;
    }
    release(rank, std::max(rank.gate.at_ps, bounds_.bound(id)));
    any = true;
  }
  for (auto next = by_instant_.begin(); next != by_instant_.end() && next->first < visible_until();) {
    const auto [instant, index] = *next;
    Rank& rank = ranks_[index];
    ++next;  // a release takes only its own entry out of the set
    if (waits_for_copy(rank, instant)) continue;
    release(rank, rank.state == RankState::polling ? rank.gate.at_ps : bounds_.bound(rank.id));
    any = true;
  }
  return any;
}

void Conductor::release(Rank& rank, std::uint64_t clock) {
  std::uint64_t horizon = visible_until() - 1;
  if (!rank.events.overflow.empty()) horizon = std::min(horizon, rank.events.overflow.front().event.at_ps - 1);
  rank.page->horizon_ps.store(horizon, std::memory_order_relaxed);
  const bool is_told_instant = takes_turns(rank);
  const bool event_moves_clock =
      rank.state == RankState::waiting || rank.state == RankState::timed || rank.state == RankState::ending;
  rank.page->release_clock_ps.store(
      std::max(event_moves_clock && !is_told_instant ? 0 : clock, std::exchange(rank.gate.rejoin_ps, 0)),
      std::memory_order_relaxed);
  if (recorder_ && event_moves_clock && clock > rank.gate.at_ps)
    recorder_->wait({rank.gate.at_ps, clock, rank.id.value});
  if (started_ && !ended_) {
    set_state(rank, rank.gate.outside ? RankState::away : RankState::running, rank.gate.outside ? never.ps : clock);
  } else {
    set_state(rank, ended_ ? RankState::ended : RankState::starting, never.ps);
  }
  rank.page->released.store(rank.gate.ticket << wire::nudge_bits, std::memory_order_seq_cst);
  if (rank.page->asleep.load(std::memory_order_seq_cst) != 0) {
    ++gates_.wakes;
    wire::futex_wake(rank.page->released);
  }
}

// --- when there is nothing to do ----------------------------------------------------------------------------------

// The bound that the slowest rank has to reach before anything more can be done.
std::uint64_t Conductor::needed_bound() {
  std::uint64_t needed = never.ps;
  if (const Instant next = engine_.next(); next != never) needed = next.ps + 1 - std::min(next.ps, lookahead_ps());
  const std::uint64_t latency = memory_watched_ ? 1 : command_latency_.ps + completion_latency_.ps;
  if (!by_instant_.empty()) {
    const std::uint64_t instant = by_instant_.begin()->first;
    needed = std::min(needed, instant + 1 - std::min(instant, latency));
  }
  if (const std::uint64_t instant = batons_.visible_needed(); instant != never.ps) {
    needed = std::min(needed, instant + 1 - std::min(instant, latency));
  }
  for (const RankId id : ready_) needed = std::min(needed, bounds_.bound(id));
  return std::min(needed, batons_.clock_needed());
}

bool Conductor::work_is_there() const {
  const auto& words = segment_.header().attention;
  const std::size_t word_count = (ranks_.size() + 63) / 64;
  for (std::size_t word = 0; word < word_count; ++word) {
    if (words[word].load(std::memory_order_seq_cst) != 0) return true;
  }
  return door_.has_visits() || door_.over();
}

void Conductor::wait_for_work() {
  auto& header = segment_.header();
  Rank& slowest = ranks_[bounds_.top().value];
  const bool watches_clock = slowest.state == RankState::running;
  const std::uint64_t needed = watches_clock ? needed_bound() : never.ps;
  const auto clock_moved = [&] {
    return watches_clock && slowest.page->clock_ps.load(std::memory_order_seq_cst) >= needed;
  };
  // Spinning pays only while a processor has nothing better to do; the only one always has.
  if (processors_ > 1 && running_ < processors_) {
    header.conductor_processor.store(static_cast<std::uint32_t>(sched_getcpu() + 1), std::memory_order_relaxed);
    if (spinner_.spin(spin_steps, [&] { return work_is_there() || clock_moved(); })) return;
  }
  if (watches_clock) slowest.page->notify_at_ps.store(needed, std::memory_order_seq_cst);
  const std::uint32_t seen = header.doorbell.load(std::memory_order_seq_cst);
  header.conductor_asleep.store(1, std::memory_order_seq_cst);
  if (!work_is_there() && !clock_moved()) {
    ++gates_.sleeps;
    wire::futex_wait(header.doorbell, seen, served() ? served_nap_ns() : nap_ns);
  }
  header.conductor_asleep.store(0, std::memory_order_seq_cst);
  served() ? look_at_holders() : check_stalls();
}

}  // namespace dryfly
