// Waits for other threads with a deadline: semaphores, condition variables, mutexes, read-write locks. See
// timed_wait.hpp for when such a wait times out in virtual time.
//
// The clock of a condition variable is a property that cannot be asked for. It is told from the deadline: virtual
// CLOCK_REALTIME is decades past 1970, virtual CLOCK_MONOTONIC a number of days.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>
#include <time.h>

#include <atomic>
#include <cstdint>

#include "preload/clock/progress_rest.hpp"
#include "preload/clock/timed_wait.hpp"
#include "preload/clock/workers.hpp"
#include "preload/export.hpp"
#include "preload/rank.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

// With the mutex released for so long, a thread that is about to signal gets as far as being able to run.
constexpr std::uint64_t first_slice_ns = 200'000;
constexpr time_t least_realtime_s = 1'000'000'000;

clockid_t clock_of(const timespec* deadline) {
  return deadline->tv_sec >= least_realtime_s ? CLOCK_REALTIME : CLOCK_MONOTONIC;
}

bool is_virtual(const timespec* deadline, const void* caller) {
  return deadline != nullptr && deadline->tv_nsec >= 0 && deadline->tv_nsec < 1'000'000'000 && waits_virtually(caller);
}

// How often conditions have been signalled, by their addresses. A signal that comes between two attempts of a wait, or
// while an attempt that has timed out locks the mutex again, wakes nobody, and one wait for all the time would have had
// it.
std::atomic<std::uint32_t> signals[64];

std::atomic<std::uint32_t>& signals_of(const void* condition) {
  return signals[reinterpret_cast<std::uintptr_t>(condition) / sizeof(pthread_cond_t) % 64];
}

// Repeats `attempt`, which waits until an instant of the real `clock` and gives 0 or an error number, until it has
// another result than ETIMEDOUT or the deadline has passed in virtual time. It comes back with `held` locked.
template <typename Attempt>
int wait_until(clockid_t clock, const timespec& deadline, Attempt attempt, pthread_mutex_t* held = nullptr) {
  TimedWait wait(instant_of(clock, deadline), EndedBy::others, first_slice_ns);
  for (;;) {
    const timespec end = wait.slice_end(clock);
    const int result = attempt(&end);
    if (result != ETIMEDOUT || !wait.go_on(held)) return result;
  }
}

int as_errno(int result) {
  if (result == 0) return 0;
  errno = result;
  return -1;
}

// The result of a function of sem_'s kind as an error number.
int error_number(int result) { return result == 0 ? 0 : errno; }

// `wait` is the library's function, with what it needs beside the end of the attempt. May wake without a signal, as
// POSIX allows, where two conditions share a count.
template <typename Wait>
int wait_condition(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* deadline,
                   Wait wait) {
  const WaitFor released(for_main(condition));
  const std::atomic<std::uint32_t>& count = signals_of(condition);
  const std::uint32_t before = count.load();
  const auto attempt = [&](const timespec* end) {
    const int result = wait(end);
    return result == ETIMEDOUT && count.load() != before ? 0 : result;
  };
  return wait_until(clock, *deadline, attempt, mutex);
}

int wait_condition(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* deadline) {
  return wait_condition(condition, mutex, clock_of(deadline), deadline,
                        [&](const timespec* end) { return real::pthread_cond_timedwait()(condition, mutex, end); });
}

int lock_mutex(pthread_mutex_t* mutex, const timespec* deadline) {
  return wait_until(CLOCK_REALTIME, *deadline,
                    [&](const timespec* end) { return real::pthread_mutex_timedlock()(mutex, end); });
}

int as_thread_result(int result) {
  return result == 0 ? thrd_success : result == ETIMEDOUT ? thrd_timedout : thrd_error;
}

}  // namespace

}  // namespace dryfly::preload

using namespace dryfly::preload;

DRYFLY_EXPORT int sem_timedwait(sem_t* semaphore, const timespec* deadline) {
  if (!is_virtual(deadline, __builtin_return_address(0))) return real::sem_timedwait()(semaphore, deadline);
  const WaitFor released(for_main(semaphore));
  return as_errno(wait_until(CLOCK_REALTIME, *deadline,
                             [&](const timespec* end) { return error_number(real::sem_timedwait()(semaphore, end)); }));
}

DRYFLY_EXPORT int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* deadline) {
  if (!is_virtual(deadline, __builtin_return_address(0))) return real::sem_clockwait()(semaphore, clock, deadline);
  const WaitFor released(for_main(semaphore));
  return as_errno(wait_until(clock, *deadline, [&](const timespec* end) {
    return error_number(real::sem_clockwait()(semaphore, clock, end));
  }));
}

DRYFLY_EXPORT int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* deadline) {
  if (!is_virtual(deadline, __builtin_return_address(0))) {
    return real::pthread_cond_timedwait()(condition, mutex, deadline);
  }
  return wait_condition(condition, mutex, deadline);
}

DRYFLY_EXPORT int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                                         const timespec* deadline) {
  if (!is_virtual(deadline, __builtin_return_address(0))) {
    return real::pthread_cond_clockwait()(condition, mutex, clock, deadline);
  }
  return wait_condition(condition, mutex, clock, deadline, [&](const timespec* end) {
    return real::pthread_cond_clockwait()(condition, mutex, clock, end);
  });
}

DRYFLY_EXPORT int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  signals_of(condition).fetch_add(1);
  end_rests();
  note_release(condition);
  return real::pthread_cond_signal()(condition);
}

DRYFLY_EXPORT int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  signals_of(condition).fetch_add(1);
  end_rests();
  note_release(condition);
  return real::pthread_cond_broadcast()(condition);
}

DRYFLY_EXPORT int cnd_signal(cnd_t* condition) {
  return as_thread_result(pthread_cond_signal(reinterpret_cast<pthread_cond_t*>(condition)));
}

DRYFLY_EXPORT int cnd_broadcast(cnd_t* condition) {
  return as_thread_result(pthread_cond_broadcast(reinterpret_cast<pthread_cond_t*>(condition)));
}

DRYFLY_EXPORT int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* deadline) {
  // The C library's C11 objects are its POSIX ones by another name.
  auto* posix_condition = reinterpret_cast<pthread_cond_t*>(condition);
  auto* posix_mutex = reinterpret_cast<pthread_mutex_t*>(mutex);
  if (!is_virtual(deadline, __builtin_return_address(0))) {
    return as_thread_result(real::pthread_cond_timedwait()(posix_condition, posix_mutex, deadline));
  }
  return as_thread_result(wait_condition(posix_condition, posix_mutex, deadline));
}

DRYFLY_EXPORT int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* deadline) noexcept {
  if (!is_virtual(deadline, __builtin_return_address(0))) return real::pthread_mutex_timedlock()(mutex, deadline);
  return lock_mutex(mutex, deadline);
}

DRYFLY_EXPORT int mtx_timedlock(mtx_t* mutex, const timespec* deadline) {
  auto* posix = reinterpret_cast<pthread_mutex_t*>(mutex);
  if (!is_virtual(deadline, __builtin_return_address(0))) {
    return as_thread_result(real::pthread_mutex_timedlock()(posix, deadline));
  }
  return as_thread_result(lock_mutex(posix, deadline));
}

// The remaining ones differ in their names only.
#define DRYFLY_TIMED_LOCK(name, type)                                                                           \
  DRYFLY_EXPORT int name(type* lock, const timespec* deadline) noexcept {                                       \
    if (!is_virtual(deadline, __builtin_return_address(0))) return real::name()(lock, deadline);                \
    return wait_until(CLOCK_REALTIME, *deadline, [&](const timespec* end) { return real::name()(lock, end); }); \
  }
#define DRYFLY_CLOCK_LOCK(name, type)                                                                         \
  DRYFLY_EXPORT int name(type* lock, clockid_t clock, const timespec* deadline) noexcept {                    \
    if (!is_virtual(deadline, __builtin_return_address(0))) return real::name()(lock, clock, deadline);       \
    return wait_until(clock, *deadline, [&](const timespec* end) { return real::name()(lock, clock, end); }); \
  }
DRYFLY_CLOCK_LOCK(pthread_mutex_clocklock, pthread_mutex_t)
DRYFLY_TIMED_LOCK(pthread_rwlock_timedrdlock, pthread_rwlock_t)
DRYFLY_TIMED_LOCK(pthread_rwlock_timedwrlock, pthread_rwlock_t)
DRYFLY_CLOCK_LOCK(pthread_rwlock_clockrdlock, pthread_rwlock_t)
DRYFLY_CLOCK_LOCK(pthread_rwlock_clockwrlock, pthread_rwlock_t)
