#include "preload/real.hpp"

#include <dlfcn.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace dryfly::preload::real {

namespace {

using clock_gettime_t = int(clockid_t, timespec*);
std::atomic<clock_gettime_t*> library_clock_gettime{nullptr};

void* find(const char* name) {
  // On x86-64 the functions of condition variables exist twice, for an old and for today's memory layout. The version
  // says that we mean today's. Other names have no such version, and what is not found the linker says in memory of
  // malloc's, from which this may be called.
  constexpr char of_conditions[] = "pthread_cond_";
  const bool is_twice = strncmp(name, of_conditions, sizeof of_conditions - 1) == 0;
  void* found = is_twice ? dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2") : nullptr;
  return found != nullptr ? found : dlsym(RTLD_NEXT, name);
}

}  // namespace

void resolve() {
  library_clock_gettime.store(reinterpret_cast<clock_gettime_t*>(dlsym(RTLD_NEXT, "clock_gettime")),
                              std::memory_order_relaxed);
  real::dlerror();  // to look it up later would clear the error that is asked for
}

dlsym_t* own_dlsym() {
  static std::atomic<dlsym_t*> known{nullptr};
  dlsym_t* function = known.load(std::memory_order_relaxed);
  // Each architecture has the version that its first glibc had.
  for (const char* version : {"GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.34"}) {
    if (function != nullptr) break;
    function = reinterpret_cast<dlsym_t*>(dlvsym(RTLD_NEXT, "dlsym", version));
  }
  known.store(function, std::memory_order_relaxed);
  return function;
}

int clock_gettime(clockid_t clock, timespec* to) {
  clock_gettime_t* function = library_clock_gettime.load(std::memory_order_relaxed);
  return function != nullptr ? function(clock, to) : static_cast<int>(syscall(SYS_clock_gettime, clock, to));
}

std::uint64_t now_ns(clockid_t clock) {
  timespec at{};
  real::clock_gettime(clock, &at);
  return static_cast<std::uint64_t>(at.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(at.tv_nsec);
}

void nap_ns(std::uint64_t ns) {
  const timespec nap{static_cast<time_t>(ns / 1'000'000'000U), static_cast<long>(ns % 1'000'000'000U)};
  real::nanosleep()(&nap, nullptr);
}

#define DRYFLY_DEFINE_REAL(name, result, parameters)            \
  name##_t* name() {                                            \
    static std::atomic<name##_t*> function{nullptr};            \
    name##_t* known = function.load(std::memory_order_relaxed); \
    if (known == nullptr) {                                     \
      known = reinterpret_cast<name##_t*>(find(#name));         \
      function.store(known, std::memory_order_relaxed);         \
    }                                                           \
    return known;                                               \
  }
DRYFLY_REAL_FUNCTIONS(DRYFLY_DEFINE_REAL)
#undef DRYFLY_DEFINE_REAL

}  // namespace dryfly::preload::real
