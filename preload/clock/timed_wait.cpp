#include "preload/clock/timed_wait.hpp"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "preload/caller.hpp"
#include "preload/clock/common_clock.hpp"
#include "preload/clock/compute.hpp"
#include "preload/clock/ledger.hpp"
#include "preload/clock/thread_states.hpp"
#include "preload/rank.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

constexpr std::uint64_t shortest_slice_ns = 200'000;
constexpr std::uint64_t longest_slice_ns = 16'000'000;
constexpr std::uint64_t endless_slice_ns = 500'000'000;
constexpr std::uint64_t slice_beside_mpi_ns = 1'000'000;

// Does a thread stand at this mutex? Its word is the futex on which glibc lets it wait. The kernel counts those that it
// moves from one futex to another, here to the same; if the word changes meanwhile, somebody has just come.
bool is_awaited(pthread_mutex_t* mutex) {
  constexpr int shared_between_processes = 128;  // PTHREAD_MUTEX_PSHARED_BIT
  int* word = &mutex->__data.__lock;
  const int flags = (mutex->__data.__kind & shared_between_processes) != 0 ? 0 : FUTEX_PRIVATE_FLAG;
  const long moved =
      syscall(SYS_futex, word, FUTEX_CMP_REQUEUE | flags, 0, INT_MAX, word, __atomic_load_n(word, __ATOMIC_RELAXED));
  return moved > 0 || (moved < 0 && errno == EAGAIN);
}

// What was computed before the wait comes first: its deadline must not be known while the clock comes to there.
bool observe_on_main_thread() {
  if (!on_main_thread()) return false;
  observe_compute(Observation::within_gap);
  return true;
}

}  // namespace

bool waits_virtually(const void* caller) { return clock_is_virtual() && !lives_in_real_time(caller); }

TimedWait::TimedWait(std::uint64_t deadline_ps, EndedBy ended_by, std::uint64_t first_slice_ns)
    : deadline_ps_(deadline_ps),
      began_ns_(real::now_ns(CLOCK_MONOTONIC)),
      used_ns_(real::now_ns(CLOCK_PROCESS_CPUTIME_ID)),
      main_(observe_on_main_thread()),
      looks_(ended_by == EndedBy::others && !__libc_single_threaded ? 2 : 1),
      looks_left_(looks_),
      pending_(deadline_ps) {
  const std::uint64_t now = instant();
  requested_ns_ = deadline_ps > now ? (deadline_ps - now) / 1000 : 0;
  slice_ns_ = main_ ? (__libc_single_threaded ? 0 : first_slice_ns) : shortest_slice_ns;
  if (slice_ns_ > requested_ns_) slice_ns_ = requested_ns_;
  if (on_served_fabric()) slice_ns_ = requested_ns_;
  if (deadline_ps_ == wire::far_future) slice_ns_ = endless_slice_ns;
}

TimedWait::~TimedWait() {
  if (main_) main_is_at_clock();
}

void TimedWait::begin_again(std::uint64_t now) {
  began_ns_ = real::now_ns(CLOCK_MONOTONIC);
  used_ns_ = real::now_ns(CLOCK_PROCESS_CPUTIME_ID);
  requested_ns_ = (deadline_ps_ - now) / 1000;
}

void TimedWait::rest() const {
  if (slice_ns_ == 0) return;
  if (another_moves_clock()) {
    pthread_testcancel();  // as the nap is a point of cancellation
    rest_for_clock(deadline_ps_, slice_ns_);
  } else {
    real::nap_ns(slice_ns_);
  }
}

timespec TimedWait::slice_end(clockid_t clock) const {
  const std::uint64_t end = real::now_ns(clock) + slice_ns_;
  return {static_cast<time_t>(end / 1'000'000'000U), static_cast<long>(end % 1'000'000'000U)};
}

// Has it waited for real as long as asked? A thread that only lacked a processor meanwhile has its time to come.
bool TimedWait::is_over(std::uint64_t elapsed_ns, bool another_can_run) const {
  if (elapsed_ns < requested_ns_) return false;
  return !another_can_run || real::now_ns(CLOCK_PROCESS_CPUTIME_ID) - used_ns_ >= requested_ns_;
}

// All looks are due again when somebody could act, or has done so since the last one.
bool TimedWait::nobody_else_acts(bool another_can_run) {
  const bool none = !another_can_run && pending_.is_first();
  if (pending_.another_came_out() || !none) {
    looks_left_ = looks_;
    return false;
  }
  if (looks_left_ == 1) return true;
  --looks_left_;
  return false;
}

bool TimedWait::go_on(pthread_mutex_t* held) {
  if (deadline_ps_ == wire::far_future) return true;
  if (!main_ && instant() >= deadline_ps_) return false;
  const std::uint64_t calls = quiet_calls();
  const std::uint64_t elapsed = real::now_ns(CLOCK_MONOTONIC) - began_ns_;
  if (on_served_fabric()) {
    // Other programs, which come and go, can make it happen: it waits as long as asked, and the clock moves along.
    const bool over = elapsed >= requested_ns_;
    if (over) advance_to(deadline_ps_);
    slice_ns_ = over ? 0 : requested_ns_ - elapsed;
    return !over;
  }
  if (clock_is_shared(deadline_ps_) && another_moves_clock() && elapsed < std::max(requested_ns_, clock_patience_ns)) {
    const std::uint64_t now = instant();
    if (now >= deadline_ps_) return false;
    if (std::exchange(seen_ps_, now) != now) begin_again(now);
    slice_ns_ = std::clamp(slice_ns_ * 2, shortest_slice_ns, slice_beside_mpi_ns);
    return true;
  }
  const bool another_can_run = running_thread() != 0 || (held != nullptr && is_awaited(held));
  const bool over = is_over(elapsed, another_can_run);
  const bool alone = nobody_else_acts(another_can_run);
  // Not where another one has been in MPI while threads were looked at: it would have looked asleep.
  const bool may_move = calls != not_quiet && quiet_calls() == calls;
  if (main_ ? over || alone : may_move && !over && alone) {
    advance_to(deadline_ps_);
    sched_yield();
    return false;
  }
  if (over) return false;
  slice_ns_ = slice_ns_ < shortest_slice_ns || looks_left_ < looks_ ? shortest_slice_ns : slice_ns_ * 2;
  if (slice_ns_ > longest_slice_ns) slice_ns_ = longest_slice_ns;
  if (elapsed < requested_ns_ && slice_ns_ > requested_ns_ - elapsed) slice_ns_ = requested_ns_ - elapsed;
  return true;
}

}  // namespace dryfly::preload
