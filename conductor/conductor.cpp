#include "conductor/conductor.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

#include "core/nic/nic_spec.hpp"
#include "core/spec/fields.hpp"

namespace dryfly {

namespace {

// Virtual time starts at the first multiple of this that lies behind everything that happened during MPI_Init.
constexpr std::uint64_t start_grid_ps = 10'000'000'000;  // 10 ms

// Ranks give a few events for each nanosecond: slots of 4 ns hold enough of them for the engine to look ahead.
constexpr unsigned slot_width_bits = 12;

constexpr long nap_ns = 50'000'000;

}  // namespace

Conductor::Conductor(const Spec& spec, const std::string& channel, const std::string& result_path, StatusLine status,
                     StatusLine attach_line, int life_line, const std::string& record_folder)
    : machine_(spec, slot_width_bits),
      segment_(spec),
      ranks_(segment_.rank_count()),
      status_(status),
      inbox_(segment_),
      clock_(machine_.engine, ranks_, {ranks_.size(), HostLatencies::read(spec), HostLatencies::of_memory(spec)},
             is_served()),
      batons_(
          ranks_, clock_.bounds(),
          [this](const Rank& writer, const Rank& reader) { return places_.latency(writer, reader); },
          segment_.header().nodes_share_memory != 0),
      delivery_(machine_.engine, segment_, ranks_, clock_, batons_),
      places_(spec, ranks_, [this](NodeId node, Rate rate) { nics_.limit_crossing(node, rate); }),
      translator_(machine_.engine, nics_, machine_.topology, segment_, ranks_, delivery_, *this, clock_.distances(),
                  places_),
      nics_(machine_.engine, machine_.carrier(), translator_.host(), nic_spec(spec)),
      job_(machine_.engine, nics_, translator_, machine_.storage.get()),
      gates_(segment_, ranks_, clock_, batons_, delivery_),
      watchdog_({ranks_, clock_, batons_, gates_, job_, status_}),
      headway_(status_),
      holders_(ranks_, clock_),
      pace_(machine_.engine, clock_),
      report_(spec, result_path,
              {machine_.engine, machine_.topology, *machine_.network, nics_, machine_.storage.get(), segment_, ranks_,
               translator_.tally(), places_, translator_.triggers()}),
      recording_(record_folder, machine_.topology, *machine_.network, report_.counter_sources(), clock_,
                 translator_.tally(), gates_),
      roster_({machine_.topology, segment_, ranks_, clock_, batons_, delivery_, translator_, watchdog_, holders_,
               inbox_, status_},
              spec, attach_line, channel, life_line) {
  if (is_served()) {
    open_fabric();
  } else {
    require_routes(spec);
  }
  status_.say("ready");
}

void Conductor::require_routes(const Spec& spec) const {
  std::map<NicId, const Rank*> user_of;
  for (const Rank& rank : ranks_) user_of.try_emplace(machine_.topology.nic_of(rank.node, rank.nic_index), &rank);
  std::vector<NicId> nics;
  for (const auto& [nic, rank] : user_of) nics.push_back(nic);
  if (const auto drained = machine_.network->drained(nics)) {
    const auto& [nic, entry] = *drained;
    const std::string where = entry + ".where";
    throw SpecError(entry + ": a drain of `" + spec.text(TextField{{where}}) + "` takes out NIC n" +
                    std::to_string(nic.value) + " of rank " + std::to_string(user_of.at(nic)->id.value) +
                    ", for which there is no other way: accepted are drains of what no rank hangs on; to lose it "
                    "nevertheless, write a loss or a flap");
  }
  const auto cut_off = machine_.network->cut_off(nics);
  if (!cut_off) return;
  const auto [from, to] = *cut_off;
  throw SpecError("what fabric.down and fabric.cabling take away leaves no way from NIC n" +
                  std::to_string(from.value) + " (rank " + std::to_string(user_of.at(from)->id.value) + ") to NIC n" +
                  std::to_string(to.value) + " (rank " + std::to_string(user_of.at(to)->id.value) + ")");
}

void Conductor::open_fabric() {
  const auto since_epoch = std::chrono::system_clock::now().time_since_epoch();
  segment_.header().epoch_ps =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(since_epoch).count());
  clock_.start(Instant{});
  batons_.start();
  translator_.tally().start(Instant{});
}

void Conductor::unreachable(RankId rank, RankId other) {
  status_.say("unreachable " + std::to_string(rank.value) + " " + std::to_string(other.value));
}

void Conductor::without_entry(RankId rank) {
  status_.say("without-entry " + std::to_string(rank.value) + " " + std::to_string(translator_.triggers().entries()));
}

void Conductor::run() {
  while (!roster_.is_over()) {
    bool progress = false;
    if (roster_.has_visits()) {
      roster_.serve_visits();
      progress = true;
    }
    progress |= inbox_.take([this](std::size_t rank) { look(ranks_[rank]); });
    progress |= advance();
    progress |= gates_.release_ready();
    if (progress) {
      watchdog_.note_progress();
      headway_.look(clock_.processed_until(), false);
      if (!is_served()) watchdog_.check_peeks();
    } else {
      if (!is_served() && !inbox_.has_any() && !has_visit()) {
        if (!watchdog_.all_wait()) {
          watchdog_.check_that_somebody_can_go_on();
        } else if (watchdog_.check_deadlock()) {
          continue;
        }
      }
      wait_for_work();
    }
  }
}

void Conductor::look(Rank& rank) {
  // The request before the commands: what a rank has issued before it came to its gate is seen before it is released.
  const std::uint32_t ticket = rank.page->gate.count.load(std::memory_order_acquire);
  if (rank.page->watches_memory.load(std::memory_order_relaxed) != 0) clock_.watch_memory();
  translator_.drain(rank);
  if (rank.process.cut_off) return;
  if (!rank.events.copy_waiters.empty()) delivery_.flush_waiters(rank);
  batons_.look(rank);
  switch (gates_.open(rank, ticket)) {
    case Gates::Milestone::all_at_start:
      return start_all();
    case Gates::Milestone::all_at_end:
      return end_all();
    case Gates::Milestone::none:
      break;
  }
  // A copy that it has been told of may be one that it cannot make at its gate.
  if (rank.state != RankState::running && !rank.events.copy_waiters.empty()) delivery_.flush_waiters(rank);
}

void Conductor::start_all() {
  Engine& engine = machine_.engine;
  engine.run(never);
  const Instant start{(engine.now().ps / start_grid_ps + 1) * start_grid_ps};
  machine_.network->restart(start);
  nics_.restart();
  clock_.start(start);
  batons_.start();
  translator_.tally().start(start);
  recording_.start(start);
  if (machine_.storage) machine_.storage->start(start);
  report_.start(start);
  status_.say("started");
  headway_.start(start);
  translator_.settle_places(start.ps);
  gates_.release_all_at_start(start);
}

void Conductor::end_all() {
  // How far the network has come depends on when the conductor looked, so it goes on to an instant that the ranks' ends
  // give.
  clock_.run_network(job_.end_of(clock_, ranks_), false);
  clock_.end();
  headway_.end();
  batons_.end();
  translator_.tally().stop();
  places_.see_last();
  if (const std::string trouble = recording_.finish(report_.end()); !trouble.empty()) status_.say("warn " + trouble);
  if (const std::string trouble = report_.write(gate_totals()); !trouble.empty()) status_.say("fatal " + trouble);
  machine_.network->end_faults();
  if (machine_.storage) machine_.storage->stop();
  status_.say("ended");
  gates_.release_all_at_end();
}

// The smallest bound, after a fresh look at the clock of the rank that has it.
std::uint64_t Conductor::settle_bounds() {
  BoundHeap& bounds = clock_.bounds();
  for (;;) {
    Rank& rank = ranks_[bounds.top().value];
    const std::uint64_t bound = bounds.least();
    if (rank.state != RankState::running) return bound;
    const std::uint64_t clock = wire::earliest_ps(*rank.page);
    translator_.drain(rank);
    if (rank.process.cut_off) continue;
    if (clock <= bound) return bound;
    bounds.set(rank.id, clock);
  }
}

bool Conductor::advance() {
  const std::uint64_t bound = settle_bounds();
  const bool all_wait = bound == never.ps;
  Instant limit = all_wait ? job_.limit_of_waiting(clock_, ranks_) : Instant{bound + clock_.lookahead_ps()};
  if (is_served()) limit = pace_.limit(limit);
  const bool ran = clock_.run_network(limit, all_wait && job_.has_company());
  job_.stopped();
  return ran;
}

long Conductor::longest_nap_ns() const {
  if (is_served()) return pace_.nap_ns();
  return watchdog_.all_wait_beside_those_away() ? watchdog_.nap_beside_ns() : nap_ns;
}

void Conductor::wait_for_work() {
  Rank& slowest = ranks_[clock_.bounds().top().value];
  const bool watches_clock = slowest.state == RankState::running;
  const std::uint64_t needed = watches_clock ? clock_.needed_bound(batons_) : never.ps;
  const bool slept = inbox_.wait(watches_clock ? &slowest : nullptr, needed, clock_.running(), longest_nap_ns(),
                                 [this] { return has_visit(); });
  if (!slept) return;
  if (!inbox_.has_any()) gates_.release_all_ready();
  headway_.look(clock_.processed_until(), true);
  is_served() ? holders_.look() : watchdog_.check_stalls();
}

GateTotals Conductor::gate_totals() const {
  return {.polls = gates_.polls(),
          .waits = gates_.waits(),
          .wakes = gates_.wakes(),
          .sleeps = inbox_.sleeps(),
          .standstills = watchdog_.standstills(),
          .outside = gates_.outside(),
          .let_go = watchdog_.let_go()};
}

}  // namespace dryfly
