// What is noticed when nothing moves in a job: a deadlock, a rank that sleeps outside the provider, a rank that spins
// without entering MPI. Wall-clock time is used for this; it decides no result unless a rank is let go, and then the
// health table says so.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "conductor/batons.hpp"
#include "conductor/clock.hpp"
#include "conductor/gates.hpp"
#include "conductor/job_traffic.hpp"
#include "conductor/rank.hpp"
#include "conductor/standstill.hpp"
#include "conductor/status.hpp"

namespace dryfly {

class Watchdog {
 public:
  struct Parts {
    std::vector<Rank>& ranks;
    Clock& clock;
    Batons& batons;
    Gates& gates;
    const JobTraffic& job;
    const StatusLine& status;
  };

  explicit Watchdog(const Parts& parts)
      : of_(parts),
        standstill_(parts.ranks, parts.clock, parts.batons, parts.job, parts.status),
        stalls_(parts.ranks.size()) {}

  // A deadlock was reported or a process is gone: only the end is left.
  void give_up() { gave_up_ = true; }
  void note_progress() { last_progress_ = watched_; }
  // No rank is on its way to its gate, or about to be released from it.
  bool all_wait() const;
  // They do, but for some that are outside virtual time: the others look again after so long.
  bool all_wait_beside_those_away() const;
  long nap_beside_ns() const { return std::chrono::nanoseconds(beside_.nap).count(); }
  // They do, and nothing has come from a rank. True: some may go on at once.
  bool check_deadlock();
  // To be asked often. A job in which ranks look for messages again and again never comes to rest: when for long
  // nothing else has happened, nobody has left the MPI call that it is in, and nothing is under way, that is a deadlock
  // too.
  void check_peeks() {
    if (++asked_ % 4096 == 0) standstill_.look();
    if (of_.job.peeks().fruitless() >= next_look_at_peeks_) look_at_peeks();
  }
  // Nothing moves: somebody's process has to, or all wait for events. Whoever waits for a turn or an instant gets on
  // by what the conductor does alone; should only such ranks be left and stand still, that is reported as a deadlock.
  void check_that_somebody_can_go_on();
  void check_stalls();

  std::uint64_t standstills() const { return standstills_; }
  std::uint64_t let_go() const { return let_go_; }

 private:
  using WallClock = std::chrono::steady_clock;
  struct Stall {
    std::uint64_t cpu_ticks = 0;
    std::uint64_t call_count = 0;
    WallClock::duration since{};        // of its last call
    WallClock::duration computed_at{};  // when its processor time was last seen to grow
    bool named = false;
  };

  void look_at_peeks();
  std::uint64_t calls_entered() const;
  bool somebody_decides() const;
  bool let_all_poll_again();
  bool let_all_poll_beside_those_away();
  bool has_moved_since_last_round() const;
  void report_deadlock();
  void check_stall(Rank& rank);

  Parts of_;
  Standstill standstill_;
  std::uint32_t asked_ = 0;
  bool gave_up_ = false;
  std::uint64_t events_at_last_round_ = 0;
  std::uint64_t writes_at_last_round_ = 0;
  std::uint64_t calls_at_last_round_ = 0;
  std::uint32_t fruitless_rounds_ = 0;
  static constexpr WallClock::duration nap_beside_least = std::chrono::milliseconds(1);
  static constexpr WallClock::duration nap_beside_most = std::chrono::milliseconds(50);
  // The others' looks while some are outside virtual time.
  struct Beside {
    WallClock::duration nap = nap_beside_least;  // to the next one
    WallClock::time_point last{};
    WallClock::duration since{};  // in watched time: nothing has come of them
    bool told = false;
  };
  Beside beside_;
  std::uint64_t next_look_at_peeks_ = 0;  // when so many have found nothing
  std::uint64_t calls_at_last_look_ = 0;
  std::uint64_t others_at_last_look_ = 0;
  // Wall time in which the conductor could look. One that was stopped or starved for a while, with the ranks or without
  // them, has learnt nothing of them in that while.
  WallClock::duration watched_{};
  WallClock::duration last_progress_{};  // when, in watched time
  WallClock::time_point last_check_ = WallClock::now();
  std::vector<Stall> stalls_;  // by rank
  std::uint64_t standstills_ = 0;
  std::uint64_t let_go_ = 0;
};

}  // namespace dryfly
