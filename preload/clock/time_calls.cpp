// The clocks that the program reads. Each reading costs what the machine file says (host.clock_read_ps), which also
// makes `while (MPI_Wtime() < t)` end. CPU-time clocks follow the virtual clock, since a real MPI rank polls.
//
// Left out, and real: CPU clocks of other processes and threads, timers (timer_create, timerfd,
// setitimer, alarm), the processor's time-stamp counter (rdtsc) and system calls made without the C library.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "preload/caller.hpp"
#include "preload/clock/common_clock.hpp"
#include "preload/clock/compute.hpp"
#include "preload/clock/ledger.hpp"
#include "preload/clock/linked_clock.hpp"
#include "preload/clock/workers.hpp"
#include "preload/export.hpp"
#include "preload/mpi/mpi_calls.hpp"
#include "preload/mpi/mpi_library.hpp"
#include "preload/rank.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

constexpr std::uint64_t ns_per_s = 1'000'000'000;

// For the run's summary, which says when most of the run was a loop that reads a clock.
void note_reading(std::uint64_t at_ps) {
  static constinit std::uint64_t last_ps = 0;
  if (phase() != Phase::running) return;
  wire::ClockReadings& readings = dryfly_self.page->times.clock_readings;
  if (readings.count++ != 0 && at_ps > last_ps) {
    const std::uint64_t passed = at_ps - last_ps;
    readings.passed_ps[63 - __builtin_clzll(passed)] += passed;
  }
  last_ps = at_ps;
}

// Each reading beside a thread that waits in MPI is a hand-over to that one. So a thread that does nothing but read is
// led in larger steps after a while, as one that does nothing but test is (rank/polls.cpp).
std::uint64_t cost_beside_mpi_ps() {
  constexpr std::uint32_t readings_before_stepping = 64;
  constexpr std::uint64_t step_ps = 1'000'000;
  static constinit std::uint32_t in_a_row = 0;
  static constinit std::uint64_t last_ps = 0;
  const std::uint64_t now = instant();
  in_a_row = now - last_ps < 2 * step_ps ? in_a_row + 1 : 0;
  last_ps = now;
  if (in_a_row < readings_before_stepping) return clock_read_cost_ps();
  return step_ps;
}

// The instant that a reading shows. A helper thread that reads while the rank is inside MPI costs nothing: the call
// moves the clock, and the number of such readings depends on the real scheduler. Where it has computed further than
// the clock is, it is there.
std::uint64_t read_instant() {
  if (!on_main_thread()) {
    if (const std::uint64_t own_ps = computed_up_to_ps(); own_ps > instant()) return own_ps;
  }
  if (on_main_thread() || !inside_mpi()) {
    observe_compute(Observation::within_gap);
    advance(another_moves_clock() ? cost_beside_mpi_ps() : clock_read_cost_ps());
    if (on_main_thread()) note_reading(instant());
  }
  return instant();
}

// Nanoseconds that `clock` shows, whether it is virtual here or not.
std::uint64_t read_ns(clockid_t clock, const void* caller) {
  if (!clock_is_virtual() || lives_in_real_time(caller)) return real::now_ns(clock);
  return clock_base_ns(clock) + read_instant() / 1000;
}

timespec to_timespec(std::uint64_t ns) {
  return {static_cast<time_t>(ns / ns_per_s), static_cast<long>(ns % ns_per_s)};
}

std::atomic<void*> real_wtime{nullptr};
std::atomic<void*> real_wtick{nullptr};

double real_reading(std::atomic<void*>& function, const char* name) {
  void* known = function.load(std::memory_order_relaxed);
  if (known == nullptr) {
    known = find_pmpi(name);
    function.store(known, std::memory_order_relaxed);
  }
  return reinterpret_cast<double (*)()>(known)();
}

double wtime() {
  if (!clock_is_virtual()) return real_reading(real_wtime, "Wtime");
  return static_cast<double>(wtime_base_s) + static_cast<double>(read_instant()) * 1e-12;
}

double wtick() {
  if (!clock_is_virtual()) return real_reading(real_wtick, "Wtick");
  return 1e-12;
}

// Does the MPI library call PMPI_X within another of its functions? Called by Fortran's bindings, which are libraries
// of MPI too, it is within none.
bool is_library_timing_itself(const void* caller) { return Nesting::inside() && lives_in_real_time(caller); }

}  // namespace

}  // namespace dryfly::preload

using namespace dryfly::preload;

DRYFLY_EXPORT int clock_gettime(clockid_t clock, timespec* to) noexcept {
  if (read_by_lnx(clock, __builtin_return_address(0), to)) return 0;
  // Negative numbers name CPU clocks of other threads and processes, and devices.
  if (clock < 0 || !clock_is_virtual() || lives_in_real_time(__builtin_return_address(0))) {
    return real::clock_gettime(clock, to);
  }
  *to = to_timespec(clock_base_ns(clock) + read_instant() / 1000);
  return 0;
}

DRYFLY_EXPORT int gettimeofday(timeval* __restrict to, void* __restrict zone) noexcept {
  const std::uint64_t ns = read_ns(CLOCK_REALTIME, __builtin_return_address(0));
  *to = {static_cast<time_t>(ns / ns_per_s), static_cast<suseconds_t>(ns % ns_per_s / 1000)};
  if (zone != nullptr) *static_cast<struct timezone*>(zone) = {};  // as the C library does
  return 0;
}

DRYFLY_EXPORT time_t time(time_t* to) noexcept {
  const auto seconds = static_cast<time_t>(read_ns(CLOCK_REALTIME, __builtin_return_address(0)) / ns_per_s);
  if (to != nullptr) *to = seconds;
  return seconds;
}

DRYFLY_EXPORT int timespec_get(timespec* to, int base) noexcept {
  if (base != TIME_UTC) return 0;
  *to = to_timespec(read_ns(CLOCK_REALTIME, __builtin_return_address(0)));
  return base;
}

DRYFLY_EXPORT clock_t clock() noexcept {
  return static_cast<clock_t>(read_ns(CLOCK_PROCESS_CPUTIME_ID, __builtin_return_address(0)) / 1000);
}

// Only the CPU time is virtual, all of it as user time; the counts are what they are.
DRYFLY_EXPORT int getrusage(__rusage_who_t who, rusage* usage) noexcept {
  const auto status = static_cast<int>(syscall(SYS_getrusage, who, usage));
  const bool own = who == RUSAGE_SELF || who == RUSAGE_THREAD;
  if (status != 0 || !own || !clock_is_virtual() || lives_in_real_time(__builtin_return_address(0))) return status;
  const std::uint64_t ns = clock_base_ns(CLOCK_PROCESS_CPUTIME_ID) + read_instant() / 1000;
  usage->ru_utime = {static_cast<time_t>(ns / ns_per_s), static_cast<suseconds_t>(ns % ns_per_s / 1000)};
  usage->ru_stime = {};
  return status;
}

// As of getrusage; elapsed time counts from where the monotonic clock does.
DRYFLY_EXPORT clock_t times(tms* to) noexcept {
  if (!clock_is_virtual() || lives_in_real_time(__builtin_return_address(0))) {
    return static_cast<clock_t>(syscall(SYS_times, to));
  }
  const std::uint64_t ns_per_tick = ns_per_s / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  const std::uint64_t passed_ns = read_instant() / 1000;
  if (to != nullptr) {
    syscall(SYS_times, to);  // the children's
    to->tms_utime = static_cast<clock_t>((clock_base_ns(CLOCK_PROCESS_CPUTIME_ID) + passed_ns) / ns_per_tick);
    to->tms_stime = 0;
  }
  return static_cast<clock_t>((clock_base_ns(CLOCK_MONOTONIC) + passed_ns) / ns_per_tick);
}

// Whoever calls these asks for the program: the Fortran bindings are part of the MPI library.
DRYFLY_EXPORT double PMPI_Wtime() {
  return is_library_timing_itself(__builtin_return_address(0)) ? real_reading(real_wtime, "Wtime") : wtime();
}
DRYFLY_EXPORT double MPI_Wtime() {
  static constinit Tool between;
  void* tool = between.function("Wtime");
  return tool == nullptr ? wtime() : reinterpret_cast<double (*)()>(tool)();
}
DRYFLY_EXPORT double mpi_wtime_() { return wtime(); }
DRYFLY_EXPORT double mpi_wtime__() { return wtime(); }
DRYFLY_EXPORT double mpi_wtime() { return wtime(); }
DRYFLY_EXPORT double MPI_WTIME() { return wtime(); }
DRYFLY_EXPORT double PMPI_Wtick() {
  return is_library_timing_itself(__builtin_return_address(0)) ? real_reading(real_wtick, "Wtick") : wtick();
}
DRYFLY_EXPORT double MPI_Wtick() {
  static constinit Tool between;
  void* tool = between.function("Wtick");
  return tool == nullptr ? wtick() : reinterpret_cast<double (*)()>(tool)();
}
DRYFLY_EXPORT double mpi_wtick_() { return wtick(); }
DRYFLY_EXPORT double mpi_wtick__() { return wtick(); }
DRYFLY_EXPORT double mpi_wtick() { return wtick(); }
DRYFLY_EXPORT double MPI_WTICK() { return wtick(); }
