#include "preload/clock/compute.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <utility>

#include "preload/clock/common_clock.hpp"
#include "preload/clock/compute_file.hpp"
#include "preload/clock/herald.hpp"
#include "preload/clock/ledger.hpp"
#include "preload/clock/pending_waits.hpp"
#include "preload/clock/progress_rest.hpp"
#include "preload/clock/thread_states.hpp"
#include "preload/clock/threads.hpp"
#include "preload/clock/workers.hpp"
#include "preload/mpi/mpi_calls.hpp"
#include "preload/mpi/spin_lock.hpp"
#include "preload/rank.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

using wire::ComputeMode;

// The present gap and the counting of points. Only the main thread comes here.
struct Compute {
  ComputeMode mode = ComputeMode::none;
  std::uint64_t factor_ppm = 0;
  GapPoint point{};         // the next one of observation
  std::uint64_t looks = 0;  // at that clock, in the present gap
  bool in_gap = false;      // the main thread is outside MPI (not in a callback of it)
  bool mismatch = false;
};
constinit Compute compute;

// What a look at the CPU clock takes of the gap in which it is made: a system call, hundreds of nanoseconds, where many
// gaps are shorter than that. How long depends on what else this computer does, so it is measured all along, by two
// looks in a row where a gap begins. A gap in which less was seen than its looks take leaves the rest to later ones, so
// that what is too much and what is too little of single gaps cancel out.
struct Looks {
  double pair_ns = 0;         // two in a row: the mean of the last ones
  double off_ns = 0;          // by how much single ones are away from it
  std::uint64_t call_ns = 0;  // how much longer a gap is in which nothing is done
  std::uint64_t owed_ns = 0;
  std::uint64_t gates = 0;            // of the rank, when the last gap began
  std::uint32_t due = 0;              // gaps until the next pair
  std::uint64_t* empty_ns = nullptr;  // while call_ns is measured: where the next gap's length goes

  std::uint64_t each_ns() const { return static_cast<std::uint64_t>(pair_ns) + call_ns; }
};
constinit Looks looks;
constexpr int looks_measured = 200;
constexpr std::uint32_t gaps_for_pair = 8;
constexpr double pair_weight = 1.0 / 32;
constexpr double error_of_mean = 1.0 / 8;  // in distances of single ones: the root of weight / (2 - weight)
constexpr std::uint64_t owed_most = 16;    // looks; more would be computing

// The main thread's gap, for other threads too.
constexpr std::uint64_t not_begun = ~std::uint64_t{0};
struct Gap {
  std::atomic<bool> open{false};
  std::atomic<std::uint32_t> count{0};
  std::atomic<std::uint64_t> at_ps{0};  // the clock, when it was last moved by what the thread has computed or waited
  std::atomic<std::uint64_t> credited_ps{0};    // what it had computed in the gap by then
  std::atomic<std::uint64_t> began_ns{0};       // of its CPU clock
  std::atomic<std::uint64_t> by_workers_ns{0};  // more than it has computed: while it waited for others
};
constinit Gap gap;
std::atomic<bool> others_move_clock{false};  // by what they compute
constinit GapWriter writer;
constinit GapReader reader;

// ns x ppm / 1e6 in picoseconds, without overflow for years of nanoseconds.
std::uint64_t scaled_ps(std::uint64_t ns, std::uint64_t ppm) { return ns / 1000 * ppm + ns % 1000 * ppm / 1000; }

// The processor time that takes so long.
std::uint64_t cpu_of_ps(std::uint64_t ps) {
  if (compute.factor_ppm == 0) return 0;
  return ps / compute.factor_ppm * 1000 + ps % compute.factor_ppm * 1000 / compute.factor_ppm;
}

std::uint64_t without_moved_by_others(std::uint64_t added_ps) {
  if (!dryfly_self.has_threads() && !others_move_clock.load(std::memory_order_relaxed)) return added_ps;
  const std::uint64_t end_ps = gap.at_ps.load(std::memory_order_relaxed) + added_ps;
  const std::uint64_t now = instant();
  return end_ps <= now ? 0 : std::min(added_ps, end_ps - now);
}

std::uint64_t cpu_now_ns() { return real::now_ns(CLOCK_THREAD_CPUTIME_ID); }

void note_pair(double ns) {
  // Now and then the kernel does something else in between, which is no look.
  const double used = std::min(ns, 2 * looks.pair_ns);
  looks.off_ns += pair_weight * (std::abs(used - looks.pair_ns) - looks.off_ns);
  looks.pair_ns += pair_weight * (used - looks.pair_ns);
}

// The clock at which a gap begins. Behind a wait there is always a pair: the first look finds the kernel's part of it
// in no cache, which is not the gap's.
std::uint64_t begin_looks() {
  const std::uint64_t gates = dryfly_self.page->gate.count.load(std::memory_order_relaxed);
  const bool waited = std::exchange(looks.gates, gates) != gates;
  if (looks.empty_ns != nullptr || (!waited && looks.due != 0)) {
    looks.due -= looks.due != 0 ? 1 : 0;
    return cpu_now_ns();
  }
  looks.due = gaps_for_pair;
  const std::uint64_t first = cpu_now_ns();
  const std::uint64_t began = cpu_now_ns();
  note_pair(static_cast<double>(began - first));
  return began;
}

GapPoint point_of(Observation observation) {
  GapPoint point = compute.point;
  if (observation == Observation::end_of_gap) point.looks = GapPoint::at_call;
  return point;
}

// From that reading of the CPU clock on, and a look that is taken off, what others are told of the gap is certain. Not
// where NICs may write to what the rank sees of its memory in it, nor where its GPU's streams act in it.
void let_tell(std::uint64_t from_ns) {
  const bool acts_within = dryfly_self.watches() || dryfly_self.serves.load(std::memory_order_relaxed) != 0;
  if (acts_within) return;
  const std::uint64_t certain_ns = looks.empty_ns != nullptr ? wire::far_future : from_ns + looks.each_ns();
  let_herald_tell(instant(), certain_ns, compute.factor_ppm);
}

// By how much the clock moves for what has been computed, and no less than has been told.
std::uint64_t newly_computed_ps(std::uint64_t computed_ns, std::uint64_t told_ps) {
  const std::uint64_t due_ps = scaled_ps(computed_ns, compute.factor_ppm);
  std::uint64_t added_ps = 0;
  const std::uint64_t credited_ps = gap.credited_ps.load(std::memory_order_relaxed);
  if (due_ps > credited_ps) {
    added_ps = without_moved_by_others(due_ps - credited_ps);
    gap.credited_ps.store(due_ps, std::memory_order_relaxed);
  }
  const std::uint64_t comes_to_ps = instant() + added_ps;
  if (told_ps <= comes_to_ps) return added_ps;
  gap.credited_ps.fetch_add(told_ps - comes_to_ps, std::memory_order_relaxed);
  return told_ps - instant();
}

void observe_measured(Observation observation) {
  const std::uint64_t told_ps = hush_herald();
  const std::uint64_t began_ns = gap.began_ns.load(std::memory_order_relaxed);
  const std::uint64_t now_ns = cpu_now_ns();
  const std::uint64_t gap_ns = now_ns - began_ns + gap.by_workers_ns.load(std::memory_order_relaxed);
  if (looks.empty_ns != nullptr) {
    *looks.empty_ns++ = gap_ns;
    return;
  }
  const std::uint64_t looking_ns = ++compute.looks * looks.each_ns() + looks.owed_ns;
  const std::uint64_t computed_ns = gap_ns - std::min(gap_ns, looking_ns);
  if (const std::uint64_t added_ps = newly_computed_ps(computed_ns, told_ps); added_ps > 0) {
    advance(added_ps);
    writer.add(point_of(observation), added_ps);
  }
  if (observation == Observation::within_gap) {
    const std::uint64_t begins_ns = gap.began_ns.load(std::memory_order_relaxed);
    const std::uint64_t left_out_ns = begins_ns - began_ns;  // while the clock came to where the rank is
    return let_tell(std::max(now_ns + left_out_ns, begins_ns + looking_ns));
  }
  looks.owed_ns = std::min(looking_ns - std::min(gap_ns, looking_ns), owed_most * looks.each_ns());
  wire::RankTimes& times = dryfly_self.page->times;
  times.measured_ns += computed_ns;
  times.looked_ns += gap_ns - computed_ns;
  times.looked_unsure_ns += compute.looks * static_cast<std::uint64_t>(looks.off_ns * error_of_mean);
}

void report_mismatch(const char* how) {
  if (!compute.mismatch) {
    fprintf(stderr,
            "dryfly: rank %s does not fit its recorded computing: %s; times from here on are not the recorded "
            "ones\n",
            rank_name(), how);
  }
  compute.mismatch = true;
  ++dryfly_self.page->times.replay_mismatches;
}

void observe_replayed(Observation observation) {
  const bool is_call = observation == Observation::end_of_gap;
  if (is_call && reader.ends_before(compute.point.calls)) {
    return report_mismatch("it goes on beyond the end of the recording");
  }
  const std::uint64_t added_ps = is_call ? reader.take_up_to(compute.point.calls) : reader.take(compute.point);
  if (added_ps > 0) advance(added_ps);
}

void pass_point(Observation observation) {
  if (observation == Observation::end_of_gap) {
    compute.point = {.calls = compute.point.calls + 1};
  } else {
    ++compute.point.looks;
  }
}

}  // namespace

namespace {

// An MPI call in which the library does nothing.
void empty_call() {
  const Nesting nesting;
  observe_compute(Observation::end_of_gap);
  begin_gap();
}

void measure_looks() {
  std::uint64_t pairs[looks_measured];
  std::uint64_t empty[looks_measured] = {};
  for (std::uint64_t& each : pairs) {
    const std::uint64_t first = cpu_now_ns();
    each = cpu_now_ns() - first;
  }
  void (*volatile call)() = empty_call;  // by a pointer, as the program calls
  looks = {.empty_ns = empty};
  begin_gap();
  for (int i = 0; i < looks_measured; ++i) call();
  const auto middle = [](std::uint64_t (&all)[looks_measured]) {
    std::nth_element(std::begin(all), std::begin(all) + looks_measured / 2, std::end(all));
    return all[looks_measured / 2];
  };
  const std::uint64_t pair_ns = middle(pairs);
  const std::uint64_t empty_ns = middle(empty);
  looks = {.pair_ns = static_cast<double>(pair_ns), .call_ns = empty_ns > pair_ns ? empty_ns - pair_ns : 0};
  compute.point = {};
}

}  // namespace

void open_compute() {
  dryfly_self.threads.reach = reach_beside_threads;
  dryfly_self.threads.took = note_getting_on;
  const wire::SegmentHeader& header = *dryfly_self.header;
  compute.mode =
      header.compute.mode == ComputeMode::model ? ComputeMode::none : header.compute.mode;  // preload/clock/work.cpp
  compute.factor_ppm = header.compute.factor_ppm;
  if (compute.mode == ComputeMode::measured) {
    open_herald();
    measure_looks();
    writer.open(getenv("DRYFLY_COMPUTE_RECORD"));
  }
  if (compute.mode == ComputeMode::replay && !reader.open(getenv("DRYFLY_COMPUTE_REPLAY"))) {
    report_mismatch("there is no recording for it");
    compute.mode = ComputeMode::none;
  }
}

void begin_gap() {
  if (!on_main_thread()) {
    note_gap();
    note_left();
    return;
  }
  gap.at_ps.store(instant(), std::memory_order_relaxed);
  gap.began_ns.store(not_begun, std::memory_order_relaxed);
  gap.by_workers_ns.store(0, std::memory_order_relaxed);
  gap.count.store(gap.count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  gap.open.store(true, std::memory_order_release);
  if (compute.mode == ComputeMode::none) return;
  compute.in_gap = true;
  compute.looks = 0;
  gap.credited_ps.store(0, std::memory_order_relaxed);
  if (compute.mode != ComputeMode::measured) return;
  const std::uint64_t began_ns = begin_looks();
  gap.began_ns.store(began_ns, std::memory_order_relaxed);
  let_tell(began_ns + looks.owed_ns);
}

std::uint64_t computing_clock_ns() {
  return compute.in_gap && compute.mode == ComputeMode::measured ? cpu_now_ns() : 0;
}

void leave_out_since(std::uint64_t clock_ns) {
  if (clock_ns != 0) gap.began_ns.fetch_add(cpu_now_ns() - clock_ns, std::memory_order_relaxed);
}

// Where computing takes no time, neither does what a thread does between two calls of MPI; but it may spin until the
// clock has moved. Within MPI it turns round and looks for events: in so much processor time it has seen what the last
// one brought, and it waits as the others do.
constexpr std::uint64_t free_without_computing_ns = 100'000;
constexpr std::uint64_t enough_within_mpi_ns = 10'000;

// By how much the clock moves for what a thread computes beside another one that waits in MPI.
std::uint64_t computed_beside_ps(std::uint64_t cpu_ns) {
  constexpr std::uint64_t as_it_is_ppm = 1'000'000;
  const std::uint64_t free_ns = compute.mode == ComputeMode::none ? free_without_computing_ns : 0;
  return scaled_ps(cpu_ns > free_ns ? cpu_ns - free_ns : 0,
                   compute.factor_ppm != 0 ? compute.factor_ppm : as_it_is_ppm);
}

// A thread that computes while another one waits in MPI. What it computes counts from the first time that anybody waits
// beside it: it need not read its clock for that. Where the clock has gone further than that, by what the thread itself
// or others have called, it counts from there.
struct Beside {
  struct From {
    pid_t thread;
    std::uint32_t gap;
    std::uint64_t events;  // bytes of them, as the ring counts
    std::uint64_t calls;
    bool operator==(const From&) const = default;
  };
  From from{};
  std::uint64_t base_ns = 0;
  std::uint64_t base_ps = 0;
  std::uint64_t since_ns = 0;  // of real time

  void count_from(std::uint64_t cpu_ns, std::uint64_t now) {
    base_ns = cpu_ns;
    base_ps = now;
  }
  // What the thread has used within MPI, where it may spin, is no computing.
  void leave_out_mpi() {
    const auto left = left_mpi(from.thread);
    if (!left || left->cpu_ns <= base_ns) return;
    base_ns = left->cpu_ns;
    base_ps = std::max(base_ps, left->at_ps);
  }
  std::uint64_t used_ns(std::uint64_t cpu_ns) const { return cpu_ns > base_ns ? cpu_ns - base_ns : 0; }
  std::uint64_t come_to_ps(std::uint64_t cpu_ns) const { return base_ps + computed_beside_ps(used_ns(cpu_ns)); }
};
constinit Beside beside;
constinit SpinLock beside_lock;

// How far the calling thread has come by what it has computed while others waited beside it in MPI; 0 if none has.
std::uint64_t come_to_beside_ps() {
  if (!dryfly_self.has_threads()) return 0;
  const SpinLock::Hold hold(beside_lock);
  if (beside.from.thread != thread_id() || thread_inside_mpi(thread_id())) return 0;
  beside.leave_out_mpi();
  const std::uint64_t come_to_ps = beside.come_to_ps(cpu_now_ns());
  beside.from = {};
  return come_to_ps;
}

// A thread other than the main one enters MPI: the clock is where it has come to.
void observe_beside() {
  if (const std::uint64_t told_ps = dismiss_herald(); told_ps > instant()) advance_to(told_ps);
  if (compute.mode != ComputeMode::measured) return;
  const std::uint64_t come_to_ps = std::max(come_to_beside_ps(), computed_up_to_ps());
  if (come_to_ps <= instant()) return;
  others_move_clock.store(true, std::memory_order_relaxed);
  advance_to(come_to_ps);
}

namespace {

bool is_left_out(pid_t thread, std::uint64_t) {
  return has_looked_in_vain(thread) || PendingWait::is_of_clock_only(thread);
}

// How far those that compute have come.
std::uint64_t reach_beside_running(std::uint64_t now) {
  const Beside::From present{running_thread(is_left_out, 0), gap.count.load(std::memory_order_relaxed),
                             dryfly_self.page->event_tail.load(std::memory_order_relaxed),
                             dryfly_self.page->call_count.load(std::memory_order_relaxed)};
  const std::uint64_t cpu_ns = present.thread != 0 ? thread_cpu_ns(present.thread) : 0;
  if (std::exchange(beside.from, present) != present) {
    beside.count_from(cpu_ns, now);
    beside.since_ns = real::now_ns(CLOCK_MONOTONIC);
  }
  if (another_is_to_look() && real::now_ns(CLOCK_MONOTONIC) - beside.since_ns < clock_patience_ns) return now;
  if (present.thread == 0) return wire::far_future;
  if (thread_inside_mpi(present.thread) && beside.used_ns(cpu_ns) >= enough_within_mpi_ns) return wire::far_future;
  beside.leave_out_mpi();
  const std::uint64_t reach = beside.come_to_ps(cpu_ns);
  if (reach >= now) return reach;
  beside.count_from(cpu_ns, now);
  return now;
}

// A thread whose instant has come goes on before the clock does.
bool is_to_go_on(std::uint64_t asked_ps, std::uint64_t now) {
  static std::uint64_t since_ns = 0;
  static std::uint64_t of_ps = 0;
  if (asked_ps > now) return false;
  const std::uint64_t now_ns = real::now_ns(CLOCK_MONOTONIC);
  if (std::exchange(of_ps, asked_ps) != asked_ps) since_ns = now_ns;
  return now_ns - since_ns < clock_patience_ns;
}

}  // namespace

std::uint64_t reach_beside_threads() {
  note_look();
  const SpinLock::Hold hold(beside_lock);
  const std::uint64_t now = instant();
  const std::uint64_t asked_ps = asked_by_others();
  if (is_to_go_on(asked_ps, now)) return now;
  const std::uint64_t reach = reach_beside_running(now);
  return asked_ps > now ? std::min(asked_ps, reach) : reach;
}

void observe_compute(Observation observation) {
  const bool ends_gap = observation != Observation::within_gap;
  if (ends_gap && phase() == Phase::running && !on_main_thread()) return observe_beside();
  if (ends_gap && on_main_thread()) gap.open.store(false, std::memory_order_relaxed);
  if (compute.mode == ComputeMode::none || phase() != Phase::running || !on_main_thread() || !compute.in_gap) return;
  compute.in_gap = !ends_gap;
  if (compute.mode == ComputeMode::measured) {
    observe_measured(observation);
  } else {
    observe_replayed(observation);
  }
  main_is_at_clock();
  pass_point(observation);
}

std::uint64_t computed_ps(std::uint64_t cpu_ns) { return scaled_ps(cpu_ns, compute.factor_ppm); }

std::uint64_t main_comes_to_ps() {
  if (!gap.open.load(std::memory_order_acquire)) return instant();
  const std::uint64_t cpu_ns = on_main_thread() ? cpu_now_ns() : thread_cpu_ns(main_thread_id());
  const std::uint64_t began_ns = gap.began_ns.load(std::memory_order_relaxed);
  const std::uint64_t used_ns = cpu_ns - std::min(began_ns, cpu_ns) + gap.by_workers_ns.load(std::memory_order_relaxed);
  const std::uint64_t due_ps = computed_ps(used_ns);
  return gap.at_ps.load(std::memory_order_relaxed) +
         (due_ps - std::min(gap.credited_ps.load(std::memory_order_relaxed), due_ps));
}

void main_is_at_clock() { gap.at_ps.store(instant(), std::memory_order_relaxed); }

void main_goes_on_at(std::uint64_t at_ps) {
  const std::uint64_t own_ps = main_comes_to_ps();
  if (at_ps > own_ps) gap.by_workers_ns.fetch_add(cpu_of_ps(at_ps - own_ps), std::memory_order_relaxed);
}

bool is_in_gap() { return on_main_thread() && compute.in_gap; }

bool computing_is_measured() { return compute.mode == ComputeMode::measured; }

bool another_comes_before(std::uint64_t at_ps) {
  if (!others_have_left_mpi()) return false;
  const auto is_elsewhere = [](pid_t thread, std::uint64_t until_ps) {
    const auto left = left_mpi(thread);
    if (!left || PendingWait::is_of_clock_only(thread)) return true;
    const std::uint64_t cpu_ns = thread_cpu_ns(thread);
    return left->at_ps + computed_beside_ps(cpu_ns - std::min(cpu_ns, left->cpu_ns)) >= until_ps;
  };
  return running_thread(is_elsewhere, at_ps) != 0;
}

bool leave_gap() {
  if (!on_main_thread() || !gap.open.load(std::memory_order_relaxed)) return false;
  observe_compute(Observation::at_poll);  // a runtime is polled too
  return true;
}

void close_compute() {
  if (compute.mode == ComputeMode::measured) writer.close(compute.point.calls);
  if (compute.mode == ComputeMode::replay && reader.has_more(compute.point.calls)) {
    report_mismatch("it ended before the end of the recording");
  }
  compute.mode = ComputeMode::none;
}

namespace {

// A program that ends without MPI_Finalize still leaves what was recorded so far.
__attribute__((destructor)) void flush_recording() {
  if (phase() == Phase::running) close_compute();
}

}  // namespace

}  // namespace dryfly::preload
