#include "conductor/watchdog.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

namespace dryfly {

namespace {

using namespace std::chrono_literals;
constexpr auto check_interval = 200ms;
constexpr auto let_go_after = 5s;
constexpr auto asleep_after = 1s;
constexpr auto name_after = 10s;

struct ProcessState {
  char letter = '?';  // R running, S sleeping, D disk, ...
  std::uint64_t cpu_ticks = 0;
};

ProcessState process_state(std::uint32_t pid) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%u/stat", pid);
  std::array<char, 1024> text{};
  const int file = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t got = read(file, text.data(), text.size() - 1);
  close(file);
  if (got <= 0) return {};
  // The command name is in parentheses and may hold anything; the fields follow its last parenthesis.
  const char* after_name = std::strrchr(text.data(), ')');
  ProcessState state;
  unsigned long user = 0;
  unsigned long system = 0;
  if (after_name == nullptr || std::sscanf(after_name + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                                           &state.letter, &user, &system) != 3) {
    return {};
  }
  state.cpu_ticks = user + system;
  return state;
}

bool is_away(const Rank& rank) { return rank.state == RankState::away; }

bool polls_do_not_help(const Rank& rank) {
  return rank.state == RankState::meeting || rank.gate.only_news || is_away(rank);
}

}  // namespace

bool Watchdog::all_wait() const {
  if (!of_.clock.runs() || gave_up_ || of_.clock.running() != 0) return false;
  return of_.clock.by_instant().empty() && !of_.clock.is_anybody_ready() && of_.batons.open_nodes().empty();
}

bool Watchdog::all_wait_beside_those_away() const { return all_wait() && std::ranges::any_of(of_.ranks, is_away); }

void Watchdog::check_that_somebody_can_go_on() {
  if (!of_.clock.runs() || gave_up_ || of_.clock.running() != 0) return;
  bool any_stands = false;
  for (const Rank& rank : of_.ranks) {
    switch (rank.state) {
      case RankState::queued:
      case RankState::polling:
        any_stands = true;
        break;
      case RankState::timed:
      case RankState::waiting:
      case RankState::meeting:
      case RankState::ending:
        break;
      case RankState::absent:
      case RankState::starting:
      case RankState::running:
      case RankState::away:
      case RankState::ended:
      case RankState::gone:
        return;  // its process decides
    }
    if (!rank.events.copy_waiters.empty()) return;  // it copies at its gate
  }
  if (any_stands) report_deadlock();
}

bool Watchdog::check_deadlock() {
  if (!of_.job.nothing_under_way()) return false;
  bool any_can_poll = false;
  bool any_away = false;
  for (const Rank& rank : of_.ranks) {
    any_away |= is_away(rank);
    if (polls_do_not_help(rank)) continue;
    const bool stuck = rank.state == RankState::waiting || rank.state == RankState::ending;
    if (!stuck || !rank.events.overflow.empty()) return false;
    any_can_poll = true;
  }
  if (any_away) return any_can_poll && let_all_poll_beside_those_away();
  if (!any_can_poll) {
    report_deadlock();
    return false;
  }
  // A library may have something left to do that takes more polls than a rank has before it waits: a queue of
  // accumulates to itself, of which a poll handles one. Everybody gets more of them; when nothing has come of that,
  // nothing will. The number of rounds bounds the wall time: few ranks get many.
  constexpr std::size_t releases_before_report = 16384;
  constexpr std::size_t rounds_least = 32;
  const std::size_t rounds_before_report = std::max(rounds_least, releases_before_report / of_.ranks.size());
  if (has_moved_since_last_round()) fruitless_rounds_ = 0;
  if (fruitless_rounds_ == rounds_before_report) {
    report_deadlock();
    return false;
  }
  ++fruitless_rounds_;
  return let_all_poll_again();
}

// That a rank is in its call for as long as the last look is seen by the number of calls, a loop of MPI_Iprobe enters
// one after the other. Where ranks talk through memory, one that looks for messages may carry on with such talk, which
// nobody sees but by what it copies; so it gets more time.
void Watchdog::look_at_peeks() {
  constexpr std::uint64_t peeks_before_report = 8192;
  constexpr std::uint64_t peeks_of_a_rank = 32;
  const std::uint64_t more = std::max<std::uint64_t>(peeks_before_report, peeks_of_a_rank * of_.ranks.size());
  next_look_at_peeks_ = of_.job.peeks().fruitless() + (of_.batons.are_in_use() ? 2 * more : more);
  const std::uint64_t calls = std::exchange(calls_at_last_look_, calls_entered());
  const std::uint64_t others = std::exchange(others_at_last_look_, of_.job.peeks().others());
  const bool still = calls == calls_at_last_look_ && others == others_at_last_look_;
  if (!still || !of_.clock.runs() || gave_up_ || somebody_decides() || !of_.job.only_peeks_under_way()) return;
  report_deadlock();
}

std::uint64_t Watchdog::calls_entered() const {
  std::uint64_t calls = 0;
  for (const Rank& rank : of_.ranks) calls += rank.page->call_count.load(std::memory_order_relaxed);
  return calls;
}

// Whose process may do anything: it is outside MPI, or another thread of it may be.
bool Watchdog::somebody_decides() const {
  return std::ranges::any_of(of_.ranks, [](const Rank& rank) {
    switch (rank.state) {
      case RankState::absent:
      case RankState::starting:
      case RankState::timed:
      case RankState::away:
      case RankState::ended:
      case RankState::gone:
        return true;
      case RankState::running:
      case RankState::queued:
      case RankState::polling:
      case RankState::waiting:
      case RankState::meeting:
      case RankState::ending:
        break;
    }
    if (!rank.events.overflow.empty() || !rank.events.copy_waiters.empty()) return true;
    return rank.page->call_index.load(std::memory_order_relaxed) == 0 || rank.page->times.several_threads != 0;
  });
}

// Nobody can say what a process does that is outside virtual time. It may wait for a file that another rank unlocks
// when it polls, so they do, but the less often the longer nothing has come of it.
bool Watchdog::let_all_poll_beside_those_away() {
  const auto now = WallClock::now();
  if (now - beside_.last < beside_.nap) return false;
  beside_.last = now;
  const bool moved = has_moved_since_last_round();
  beside_.nap = moved ? nap_beside_least : std::min(2 * beside_.nap, nap_beside_most);
  if (moved || beside_.since == WallClock::duration{}) {
    beside_.since = watched_;
  } else if (!beside_.told && watched_ - beside_.since >= name_after) {
    beside_.told = true;
    for (const Rank& rank : of_.ranks) {
      if (is_away(rank))
        of_.status.say("awaited " + std::to_string(rank.id.value) + " " + std::to_string(rank.process.pid));
    }
  }
  return let_all_poll_again();
}

bool Watchdog::has_moved_since_last_round() const {
  return of_.job.events() != events_at_last_round_ || of_.batons.writes() != writes_at_last_round_ ||
         calls_entered() != calls_at_last_round_;
}

bool Watchdog::let_all_poll_again() {
  events_at_last_round_ = of_.job.events();
  writes_at_last_round_ = of_.batons.writes();
  calls_at_last_round_ = calls_entered();
  ++standstills_;
  if (of_.batons.are_in_use()) {
    of_.batons.let_all_look();
    return true;
  }
  for (Rank& rank : of_.ranks) {
    if (!polls_do_not_help(rank)) of_.gates.release(rank, rank.gate.at_ps);
  }
  return false;  // they go on in their own time
}

void Watchdog::report_deadlock() {
  give_up();
  of_.status.say("deadlock");
  for (const Rank& rank : of_.ranks) {
    const std::string call = call_name(rank.page->call_index.load(std::memory_order_relaxed));
    // Its process waits for the stream in a call of the GPU's runtime, which has no number.
    const std::string stream = "a stream of its GPU waits for a value that nobody will write";
    of_.status.say("deadlock-rank " + std::to_string(rank.id.value) + " " + (rank.gate.only_news ? stream : call));
    const std::uint64_t without_entry = of_.job.triggers().without_entry(rank.id);
    if (without_entry == 0) continue;
    of_.status.say("deadlock-triggers " + std::to_string(without_entry) + " " +
                   std::to_string(of_.job.triggers().entries()));
  }
  of_.status.say("deadlock-end");
}

void Watchdog::check_stalls() {
  const auto now = WallClock::now();
  if (now - last_check_ < check_interval) return;
  watched_ += std::min<WallClock::duration>(now - last_check_, 2 * check_interval);
  last_check_ = now;
  standstill_.look();
  if (!of_.clock.runs() || gave_up_) return;
  for (Rank& rank : of_.ranks) {
    if (rank.state == RankState::running) check_stall(rank);
  }
}

void Watchdog::check_stall(Rank& rank) {
  Stall& stall = stalls_[rank.id.value];
  const std::uint64_t calls = rank.page->call_count.load(std::memory_order_relaxed);
  const ProcessState process = process_state(rank.process.pid);
  const bool inside_mpi = rank.page->call_index.load(std::memory_order_relaxed) != 0;
  const bool moved = calls != stall.call_count || stall.since == WallClock::duration{} || inside_mpi;
  const std::string who = std::to_string(rank.id.value) + " " + std::to_string(rank.process.pid);
  if (moved) {
    stall = {.cpu_ticks = process.cpu_ticks, .call_count = calls, .since = watched_, .computed_at = watched_};
    return;
  }
  if (process.cpu_ticks != stall.cpu_ticks) {
    stall.cpu_ticks = process.cpu_ticks;
    stall.computed_at = watched_;
    if (stall.named || watched_ - stall.since < name_after) return;
    stall.named = true;
    return of_.status.say("spinning " + who);
  }
  // One that computes with pauses, for a file or on a busy computer, is not asleep.
  const bool asleep = (process.letter == 'S' || process.letter == 'D' || process.letter == 'T') &&
                      watched_ - stall.computed_at >= asleep_after;
  if (!asleep || watched_ - last_progress_ < let_go_after || watched_ - stall.since < let_go_after) return;
  ++let_go_;
  of_.status.say("let-go " + who);
  of_.clock.set_state(rank, RankState::away, never.ps);
  of_.batons.forget(rank);
}

}  // namespace dryfly
