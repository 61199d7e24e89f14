// The C library's own functions behind the ones that this library interposes. Nothing in preload/ calls such a function
// by its name, which would come back here.
#pragma once

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/types.h>
#include <threads.h>
#include <time.h>

#include <cstdint>

namespace dryfly::preload::real {

// Looks the functions up; called by the constructor. Before it, clock_gettime falls back to the system call, because
// an allocator may read a clock while the dynamic linker is at work for us.
void resolve();

int clock_gettime(clockid_t clock, timespec* to);

// Nanoseconds of a real clock.
std::uint64_t now_ns(clockid_t clock);

// Naps for real, whoever calls.
void nap_ns(std::uint64_t ns);

#define DRYFLY_REAL_FUNCTIONS(X)                                                                                    \
  X(nanosleep, int, (const timespec*, timespec*))                                                                   \
  X(clock_nanosleep, int, (clockid_t, int, const timespec*, timespec*))                                             \
  X(poll, int, (pollfd*, nfds_t, int))                                                                              \
  X(ppoll, int, (pollfd*, nfds_t, const timespec*, const sigset_t*))                                                \
  X(select, int, (int, fd_set*, fd_set*, fd_set*, timeval*))                                                        \
  X(pselect, int, (int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*))                               \
  X(epoll_wait, int, (int, epoll_event*, int, int))                                                                 \
  X(epoll_pwait, int, (int, epoll_event*, int, int, const sigset_t*))                                               \
  X(epoll_pwait2, int, (int, epoll_event*, int, const timespec*, const sigset_t*))                                  \
  X(sem_timedwait, int, (sem_t*, const timespec*))                                                                  \
  X(sem_clockwait, int, (sem_t*, clockid_t, const timespec*))                                                       \
  X(pthread_cond_timedwait, int, (pthread_cond_t*, pthread_mutex_t*, const timespec*))                              \
  X(pthread_cond_clockwait, int, (pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*))                   \
  X(pthread_join, int, (pthread_t, void**))                                                                         \
  X(pthread_barrier_wait, int, (pthread_barrier_t*))                                                                \
  X(pthread_cond_wait, int, (pthread_cond_t*, pthread_mutex_t*))                                                    \
  X(sem_post, int, (sem_t*))                                                                                        \
  X(sem_wait, int, (sem_t*))                                                                                        \
  X(pthread_cond_signal, int, (pthread_cond_t*))                                                                    \
  X(pthread_cond_broadcast, int, (pthread_cond_t*))                                                                 \
  X(pthread_mutex_timedlock, int, (pthread_mutex_t*, const timespec*))                                              \
  X(pthread_mutex_clocklock, int, (pthread_mutex_t*, clockid_t, const timespec*))                                   \
  X(pthread_rwlock_timedrdlock, int, (pthread_rwlock_t*, const timespec*))                                          \
  X(pthread_rwlock_timedwrlock, int, (pthread_rwlock_t*, const timespec*))                                          \
  X(pthread_rwlock_clockrdlock, int, (pthread_rwlock_t*, clockid_t, const timespec*))                               \
  X(pthread_rwlock_clockwrlock, int, (pthread_rwlock_t*, clockid_t, const timespec*))                               \
  X(sigtimedwait, int, (const sigset_t*, siginfo_t*, const timespec*))                                              \
  X(pthread_create, int, (pthread_t*, const pthread_attr_t*, void* (*)(void*), void*))                              \
  X(thrd_create, int, (thrd_t*, thrd_start_t, void*))                                                               \
  X(dlclose, int, (void*))                                                                                          \
  X(dlerror, char*, ())                                                                                             \
  X(dlopen, void*, (const char*, int))                                                                              \
  X(execve, int, (const char*, char* const*, char* const*))                                                         \
  X(execvpe, int, (const char*, char* const*, char* const*))                                                        \
  X(posix_spawn, int,                                                                                               \
    (pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*, char* const*, char* const*)) \
  X(posix_spawnp, int,                                                                                              \
    (pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*, char* const*, char* const*)) \
  X(faccessat, int, (int, const char*, int, int))                                                                   \
  X(sched_setaffinity, int, (pid_t, std::size_t, const cpu_set_t*))                                                 \
  X(sched_getaffinity, int, (pid_t, std::size_t, cpu_set_t*))                                                       \
  X(sched_getcpu, int, ())                                                                                          \
  X(pthread_setaffinity_np, int, (pthread_t, std::size_t, const cpu_set_t*))                                        \
  X(pthread_getaffinity_np, int, (pthread_t, std::size_t, cpu_set_t*))                                              \
  X(pthread_attr_setaffinity_np, int, (pthread_attr_t*, std::size_t, const cpu_set_t*))                             \
  X(fopen, FILE*, (const char*, const char*))                                                                       \
  X(open, int, (const char*, int, ...))                                                                             \
  X(open64, int, (const char*, int, ...))                                                                           \
  X(openat, int, (int, const char*, int, ...))                                                                      \
  X(openat64, int, (int, const char*, int, ...))                                                                    \
  X(opendir, DIR*, (const char*))                                                                                   \
  X(sysconf, long, (int))                                                                                           \
  X(shm_open, int, (const char*, int, mode_t))                                                                      \
  X(shm_unlink, int, (const char*))                                                                                 \
  X(mkstemp, int, (char*))                                                                                          \
  X(unlink, int, (const char*))                                                                                     \
  X(read, ssize_t, (int, void*, std::size_t))                                                                       \
  X(write, ssize_t, (int, const void*, std::size_t))                                                                \
  X(fcntl, int, (int, int, ...))                                                                                    \
  X(fcntl64, int, (int, int, ...))                                                                                  \
  X(flock, int, (int, int))                                                                                         \
  X(lockf, int, (int, int, off_t))                                                                                  \
  X(lockf64, int, (int, int, off64_t))

// The C library's dlsym, which the preload takes the place of (mpi/symbol_calls.cpp).
using dlsym_t = void*(void*, const char*);
dlsym_t* own_dlsym();
inline void* symbol(void* handle, const char* name) { return own_dlsym()(handle, name); }

// name() gives the address of the C library's function, looked up once; null where the C library has none.
#define DRYFLY_DECLARE_REAL(name, result, parameters) \
  using name##_t = result parameters;                 \
  name##_t* name();
DRYFLY_REAL_FUNCTIONS(DRYFLY_DECLARE_REAL)
#undef DRYFLY_DECLARE_REAL

}  // namespace dryfly::preload::real
