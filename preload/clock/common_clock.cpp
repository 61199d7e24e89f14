#include "preload/clock/common_clock.hpp"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>

#include "preload/clock/compute.hpp"
#include "preload/clock/ledger.hpp"
#include "preload/clock/pending_waits.hpp"
#include "preload/clock/workers.hpp"
#include "preload/mpi/mpi_calls.hpp"
#include "preload/rank.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

constexpr std::uint64_t slice_ns = 200'000;
constexpr std::uint64_t slice_between_calls_ns = 20'000;

std::atomic<std::uint32_t> news{0};
std::atomic<std::uint32_t> asking{0};  // threads

void rest(std::uint32_t seen, std::uint64_t most_ns) {
  const timespec limit{static_cast<time_t>(most_ns / 1'000'000'000U), static_cast<long>(most_ns % 1'000'000'000U)};
  syscall(SYS_futex, &news, FUTEX_WAIT_PRIVATE, seen, &limit, nullptr, 0);
}

bool may_share_clock() {
  return others_may_call() && phase() == Phase::running && !Nesting::inside() && !on_served_fabric();
}

}  // namespace

bool another_moves_clock() { return may_share_clock() && inside_mpi(); }

bool clock_is_shared(std::uint64_t at_ps) {
  if (!may_share_clock()) return false;
  const bool is_shared = inside_mpi() || another_comes_before(at_ps);
  if (is_shared) let_several_threads_wait();
  return is_shared;
}

void rest_for_clock(std::uint64_t at_ps, std::uint64_t most_ns) {
  asking.fetch_add(1);
  const std::uint32_t seen = news.load();
  if (instant() < at_ps) rest(seen, another_moves_clock() ? most_ns : std::min(most_ns, slice_between_calls_ns));
  asking.fetch_sub(1);
}

namespace {

void ask_for_clock(std::uint64_t at_ps) {
  const std::uint64_t clock_ns = on_main_thread() ? computing_clock_ns() : worker_clock_ns();
  {
    const PendingWait asked(at_ps, PendingWait::Form::of_clock_only);
    const std::uint64_t end_ns = real::now_ns(CLOCK_MONOTONIC) + clock_patience_ns;
    while (instant() < at_ps && clock_is_shared(at_ps) && real::now_ns(CLOCK_MONOTONIC) < end_ns) {
      rest_for_clock(at_ps, slice_ns);
    }
  }
  if (on_main_thread()) return leave_out_since(clock_ns);
  leave_worker_out_since(clock_ns);
}

}  // namespace

void wait_for_clock(std::uint64_t at_ps) {
  const int error = errno;
  if (instant() < at_ps && clock_is_shared(at_ps)) ask_for_clock(at_ps);
  errno = error;  // reading a clock changes none
}

std::uint64_t asked_by_others() {
  const std::uint64_t earliest = PendingWait::earliest();
  if (earliest <= instant()) tell_those_who_ask();
  return earliest;
}

void tell_those_who_ask() {
  if (asking.load() == 0) return;
  news.fetch_add(1);
  syscall(SYS_futex, &news, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace dryfly::preload
