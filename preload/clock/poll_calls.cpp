// Waits for descriptors and signals with a time-out. Descriptors are real, the time-out is virtual; see timed_wait.hpp.
// Without a time-out, or with none at all to wait, the real function does it.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "preload/clock/timed_wait.hpp"
#include "preload/export.hpp"
#include "preload/rank.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

bool is_positive(const timespec* timeout) {
  if (timeout == nullptr || timeout->tv_sec < 0 || timeout->tv_nsec < 0 || timeout->tv_nsec >= 1'000'000'000) {
    return false;
  }
  return timeout->tv_sec > 0 || timeout->tv_nsec > 0;
}

timespec from_ms(int ms) { return {ms / 1000, ms % 1000 * 1'000'000L}; }

// Repeats `attempt`, which waits for real for a time and gives the function's result (0: nothing has happened), until
// something has happened or the wait has timed out.
template <typename Attempt>
int wait_virtually(const timespec& timeout, Attempt attempt) {
  const std::uint64_t ps = duration_ps(timeout);
  TimedWait wait(ps == wire::far_future ? ps : instant() + ps, EndedBy::others);
  for (;;) {
    const int result = attempt(wait.slice());
    if (result != 0 || !wait.go_on()) return result;
  }
}

// The descriptor sets of one select call: each attempt overwrites them.
class Sets {
 public:
  Sets(int count, fd_set* reads, fd_set* writes, fd_set* errors)
      : bytes_((static_cast<std::size_t>(count < 0 ? 0 : count) + 8 * sizeof(long) - 1) / (8 * sizeof(long)) *
               sizeof(long)),
        sets_{reads, writes, errors} {
    for (int i = 0; i < 3; ++i) {
      if (sets_[i] != nullptr && bytes_ <= sizeof(fd_set)) __builtin_memcpy(&saved_[i], sets_[i], bytes_);
    }
  }
  // A program may use sets larger than fd_set; such a call is left to the real function.
  bool fits() const { return bytes_ <= sizeof(fd_set); }
  void restore() {
    for (int i = 0; i < 3; ++i) {
      if (sets_[i] != nullptr) __builtin_memcpy(sets_[i], &saved_[i], bytes_);
    }
  }

 private:
  std::size_t bytes_;
  fd_set* sets_[3];
  fd_set saved_[3];
};

int poll_virtually(pollfd* watched, nfds_t count, int timeout_ms) {
  return wait_virtually(from_ms(timeout_ms),
                        [&](const timespec& slice) { return real::ppoll()(watched, count, &slice, nullptr); });
}

int epoll_virtually(int epoll, epoll_event* events, int most, const timespec& timeout, const sigset_t* mask) {
  return wait_virtually(timeout, [&](const timespec& slice) {
    return real::epoll_pwait()(epoll, events, most, static_cast<int>(slice.tv_nsec / 1'000'000), mask);
  });
}

}  // namespace

}  // namespace dryfly::preload

using namespace dryfly::preload;

DRYFLY_EXPORT int poll(pollfd* watched, nfds_t count, int timeout_ms) {
  if (timeout_ms <= 0 || !waits_virtually(__builtin_return_address(0))) {
    return real::poll()(watched, count, timeout_ms);
  }
  return poll_virtually(watched, count, timeout_ms);
}

// What poll becomes under _FORTIFY_SOURCE.
DRYFLY_EXPORT int __poll_chk(pollfd* watched, nfds_t count, int timeout_ms, std::size_t bytes) {
  if (bytes / sizeof(pollfd) < count) abort();
  if (timeout_ms <= 0 || !waits_virtually(__builtin_return_address(0))) {
    return real::poll()(watched, count, timeout_ms);
  }
  return poll_virtually(watched, count, timeout_ms);
}

DRYFLY_EXPORT int ppoll(pollfd* watched, nfds_t count, const timespec* timeout, const sigset_t* mask) {
  if (!is_positive(timeout) || !waits_virtually(__builtin_return_address(0))) {
    return real::ppoll()(watched, count, timeout, mask);
  }
  return wait_virtually(*timeout, [&](const timespec& slice) { return real::ppoll()(watched, count, &slice, mask); });
}

DRYFLY_EXPORT int select(int count, fd_set* reads, fd_set* writes, fd_set* errors, timeval* timeout) {
  timespec wanted{};
  if (timeout != nullptr) wanted = {timeout->tv_sec, timeout->tv_usec * 1000};
  Sets sets(count, reads, writes, errors);
  if (!is_positive(timeout == nullptr ? nullptr : &wanted) || !sets.fits() ||
      !waits_virtually(__builtin_return_address(0))) {
    return real::select()(count, reads, writes, errors, timeout);
  }
  const int result = wait_virtually(wanted, [&](const timespec& slice) {
    sets.restore();
    return real::pselect()(count, reads, writes, errors, &slice, nullptr);
  });
  if (result == 0) *timeout = {};  // Linux leaves what remains of the time-out
  return result;
}

DRYFLY_EXPORT int pselect(int count, fd_set* reads, fd_set* writes, fd_set* errors, const timespec* timeout,
                          const sigset_t* mask) {
  Sets sets(count, reads, writes, errors);
  if (!is_positive(timeout) || !sets.fits() || !waits_virtually(__builtin_return_address(0))) {
    return real::pselect()(count, reads, writes, errors, timeout, mask);
  }
  return wait_virtually(*timeout, [&](const timespec& slice) {
    sets.restore();
    return real::pselect()(count, reads, writes, errors, &slice, mask);
  });
}

DRYFLY_EXPORT int epoll_wait(int epoll, epoll_event* events, int most, int timeout_ms) {
  if (timeout_ms <= 0 || !waits_virtually(__builtin_return_address(0))) {
    return real::epoll_wait()(epoll, events, most, timeout_ms);
  }
  return epoll_virtually(epoll, events, most, from_ms(timeout_ms), nullptr);
}

DRYFLY_EXPORT int epoll_pwait(int epoll, epoll_event* events, int most, int timeout_ms, const sigset_t* mask) {
  if (timeout_ms <= 0 || !waits_virtually(__builtin_return_address(0))) {
    return real::epoll_pwait()(epoll, events, most, timeout_ms, mask);
  }
  return epoll_virtually(epoll, events, most, from_ms(timeout_ms), mask);
}

DRYFLY_EXPORT int epoll_pwait2(int epoll, epoll_event* events, int most, const timespec* timeout,
                               const sigset_t* mask) {
  if (!is_positive(timeout) || !waits_virtually(__builtin_return_address(0))) {
    if (real::epoll_pwait2() == nullptr) {
      errno = ENOSYS;  // a C library before 2.35
      return -1;
    }
    return real::epoll_pwait2()(epoll, events, most, timeout, mask);
  }
  return epoll_virtually(epoll, events, most, *timeout, mask);
}

DRYFLY_EXPORT int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* timeout) {
  if (!is_positive(timeout) || !waits_virtually(__builtin_return_address(0))) {
    return real::sigtimedwait()(set, info, timeout);
  }
  const int result = wait_virtually(*timeout, [&](const timespec& slice) {
    const int signal = real::sigtimedwait()(set, info, &slice);
    return signal < 0 && errno == EAGAIN ? 0 : signal;
  });
  if (result != 0) return result;
  errno = EAGAIN;
  return -1;
}
