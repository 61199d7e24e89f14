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
#include "preload/export.hpp"
#include "preload/rank.hpp"

namespace dryfly::preload {

namespace {

constexpr std::uint64_t first_slice_ns = 200'000;  // as for locks: whoever is about to wake us gets to run

// Not through dlsym: the first call may come while the dynamic linker is at work.
long kernel_call(long number, const long (&a)[6]) {
#if defined(__x86_64__)
  long result = number;
  register long r10 __asm__("r10") = a[3];
  register long r8 __asm__("r8") = a[4];
  register long r9 __asm__("r9") = a[5];
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long result __asm__("x0") = a[0];
  register long x1 __asm__("x1") = a[1];
  register long x2 __asm__("x2") = a[2];
  register long x3 __asm__("x3") = a[3];
  register long x4 __asm__("x4") = a[4];
  register long x5 __asm__("x5") = a[5];
  __asm__ volatile("svc 0" : "+r"(result) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
#else
#error "how this processor makes a system call is not known here"
#endif
  constexpr long largest_error = 4095;
  if (result >= 0 || result < -largest_error) return result;
  errno = static_cast<int>(-result);
  return -1;
}

const timespec* timeout_of(const long (&a)[6]) { return reinterpret_cast<const timespec*>(a[3]); }

bool is_timed_wait(long number, const long (&a)[6]) {
  if (number != SYS_futex) return false;
  const long command = a[1] & FUTEX_CMD_MASK;
  const timespec* timeout = timeout_of(a);
  return (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET) && timeout != nullptr && timeout->tv_nsec >= 0 &&
         timeout->tv_nsec < 1'000'000'000;
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
  const bool any = (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT;
  const long operation = FUTEX_WAIT_BITSET | (a[1] & FUTEX_PRIVATE_FLAG);
  const long bits = any ? static_cast<long>(FUTEX_BITSET_MATCH_ANY) : a[5];
  TimedWait wait(deadline_of(a), EndedBy::others, first_slice_ns);
  for (;;) {
    const timespec end = wait.slice_end(CLOCK_MONOTONIC);
    const long attempt[6] = {a[0], operation, a[2], reinterpret_cast<long>(&end), 0, bits};
    const long result = kernel_call(SYS_futex, attempt);
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
  return kernel_call(number, arguments);
}
