// Sleeps of the program: they move the virtual clock, by the rule of timed_wait.hpp.
#include <errno.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "preload/caller.hpp"
#include "preload/clock/timed_wait.hpp"
#include "preload/export.hpp"
#include "preload/rank.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

bool is_valid(const timespec* time) { return time != nullptr && time->tv_nsec >= 0 && time->tv_nsec < 1'000'000'000; }

void sleep_until(std::uint64_t deadline_ps) {
  TimedWait wait(deadline_ps, EndedBy::time_only);
  do {
    wait.rest();
  } while (wait.go_on());
}

// False if the sleep is not one for virtual time, and has to be left to the real function.
bool sleep_virtually(const timespec* duration, const void* caller) {
  if (!waits_virtually(caller) || !is_valid(duration) || duration->tv_sec < 0) return false;
  const std::uint64_t ps = duration_ps(*duration);
  if (ps == wire::far_future) return false;
  sleep_until(instant() + ps);
  return true;
}

// How many ranks share the host's processors, as the launcher says; 1 if it does not.
long rank_count() {
  const char* text = getenv("PMI_SIZE");
  const long count = text != nullptr ? atol(text) : 1;
  return count > 0 ? count : 1;
}

// Open MPI waits for the others in MPI_Init and MPI_Finalize by sleeping 100 us again and again. Done by hundreds of
// ranks of one host at once, that leaves no processor time to those they wait for, so there its sleeps are longer:
// together they wake as often as two ranks would.
timespec patient(const timespec& duration, const void* caller) {
  constexpr long longest_us = 1000;
  const long us = duration.tv_nsec / 1000;
  const auto outside = static_cast<std::uint32_t>(rank::CallMode::outside);
  if (dryfly_self.call_mode.load(std::memory_order_relaxed) != outside || duration.tv_sec != 0 || us > longest_us ||
      !lives_in_real_time(caller)) {
    return duration;
  }
  static const long ranks = rank_count();
  const long together_us = us * (ranks > 2 ? ranks / 2 : 1);
  return {together_us / 1'000'000, together_us % 1'000'000 * 1000};
}

}  // namespace

}  // namespace dryfly::preload

using namespace dryfly::preload;
namespace wire = dryfly::wire;

DRYFLY_EXPORT int nanosleep(const timespec* duration, timespec* remaining) {
  if (!sleep_virtually(duration, __builtin_return_address(0))) return real::nanosleep()(duration, remaining);
  if (remaining != nullptr) *remaining = {};
  return 0;
}

DRYFLY_EXPORT int clock_nanosleep(clockid_t clock, int flags, const timespec* time, timespec* remaining) {
  if (clock >= 0 && flags == 0 && sleep_virtually(time, __builtin_return_address(0))) {
    if (remaining != nullptr) *remaining = {};
    return 0;
  }
  const bool absolute = clock >= 0 && flags == TIMER_ABSTIME && is_valid(time);
  if (absolute && waits_virtually(__builtin_return_address(0))) {
    const std::uint64_t deadline_ps = instant_of(clock, *time);
    if (deadline_ps != wire::far_future) {
      sleep_until(deadline_ps);
      return 0;
    }
  }
  return real::clock_nanosleep()(clock, flags, time, remaining);
}

DRYFLY_EXPORT int usleep(useconds_t us) {
  const timespec duration{static_cast<time_t>(us / 1'000'000), static_cast<long>(us % 1'000'000) * 1000};
  if (sleep_virtually(&duration, __builtin_return_address(0))) return 0;
  const timespec longer = patient(duration, __builtin_return_address(0));
  return real::nanosleep()(&longer, nullptr);
}

DRYFLY_EXPORT unsigned sleep(unsigned seconds) {
  const timespec duration{static_cast<time_t>(seconds), 0};
  if (sleep_virtually(&duration, __builtin_return_address(0))) return 0;
  // Open MPI's btl/ofi sleeps for a second as it closes, for the sake of another provider.
  if (phase() == Phase::ended && lives_in_real_time(__builtin_return_address(0))) return 0;
  timespec remaining{};
  if (real::nanosleep()(&duration, &remaining) == 0) return 0;
  return static_cast<unsigned>(remaining.tv_sec) + (remaining.tv_nsec >= 500'000'000 ? 1 : 0);
}

DRYFLY_EXPORT int thrd_sleep(const timespec* duration, timespec* remaining) {
  if (sleep_virtually(duration, __builtin_return_address(0))) {
    if (remaining != nullptr) *remaining = {};
    return 0;
  }
  if (real::nanosleep()(duration, remaining) == 0) return 0;
  return errno == EINTR ? -1 : -2;
}
