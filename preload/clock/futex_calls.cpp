// Timed waits on a futex. The C++ library makes them itself, by syscall(): future::wait_for, atomic waits with a
// deadline, semaphores. See timed_wait.hpp for when such a wait times out in virtual time. Every other system call
// goes straight to the kernel.
#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload/clock/timed_wait.hpp"
#include "preload/clock/workers.hpp"
#include "preload/export.hpp"
#include "preload/node/system_calls.hpp"
#include "preload/rank.hpp"
#include "rank/kernel_call.hpp"

namespace dryfly::preload {

namespace {

constexpr std::uint64_t first_slice_ns = 200'000;  // as for locks: whoever is about to wake us gets to run

const timespec* timeout_of(const long (&a)[6]) { return reinterpret_cast<const timespec*>(a[3]); }

bool is_wait(const long (&a)[6]) {
  const long command = a[1] & FUTEX_CMD_MASK;
  return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
}

bool is_timed_wait(long number, const long (&a)[6]) {
  if (number != SYS_futex) return false;
  const timespec* timeout = timeout_of(a);
  return is_wait(a) && timeout != nullptr && timeout->tv_nsec >= 0 && timeout->tv_nsec < 1'000'000'000;
}

std::uint64_t deadline_of(const long (&a)[6]) {
  const timespec& timeout = *timeout_of(a);
  if ((a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET) {
    return instant_of((a[1] & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC, timeout);
  }
  const std::uint64_t ps = duration_ps(timeout);
  return ps == wire::far_future ? ps : instant() + ps;
}

long wait_virtually(const long (&a)[6]) {
  const WaitFor released(for_main(reinterpret_cast<const void*>(a[0])));
  const bool any = (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT;
  const long operation = FUTEX_WAIT_BITSET | (a[1] & FUTEX_PRIVATE_FLAG);
  const long bits = any ? static_cast<long>(FUTEX_BITSET_MATCH_ANY) : a[5];
  TimedWait wait(deadline_of(a), EndedBy::others, first_slice_ns);
  for (;;) {
    const timespec end = wait.slice_end(CLOCK_MONOTONIC);
    const long attempt[6] = {a[0], operation, a[2], reinterpret_cast<long>(&end), 0, bits};
    const long result = rank::kernel_call(SYS_futex, attempt);
    if (result != -1 || errno != ETIMEDOUT) return result;
    if (wait.go_on()) continue;
    errno = ETIMEDOUT;
    return -1;
  }
}

}  // namespace

}  // namespace dryfly::preload

using namespace dryfly::preload;

DRYFLY_EXPORT long syscall(long number, ...) noexcept {
  long arguments[6];
  va_list words;
  va_start(words, number);
  for (long& argument : arguments) argument = va_arg(words, long);
  va_end(words);
  if (is_timed_wait(number, arguments) && waits_virtually(__builtin_return_address(0))) {
    return wait_virtually(arguments);
  }
  if (number == SYS_futex && !is_wait(arguments)) note_release(reinterpret_cast<const void*>(arguments[0]));
  if (number == SYS_futex && is_wait(arguments)) {
    const WaitFor wait(reinterpret_cast<const void*>(arguments[0]));
    return dryfly::rank::kernel_call(number, arguments);
  }
  long result = 0;
  if (answers_for_node(number, arguments, __builtin_return_address(0), result)) return result;
  return dryfly::rank::kernel_call(number, arguments);
}
