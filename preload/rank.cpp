#include "preload/rank.hpp"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "preload/clock/common_clock.hpp"
#include "preload/clock/compute.hpp"
#include "preload/clock/ledger.hpp"
#include "preload/mpi/expected_mpi.hpp"
#include "preload/mpi/mpi_library.hpp"
#include "preload/real.hpp"

extern "C" {
// All else is zero.
__attribute__((visibility("default"))) constinit dryfly::rank::Self dryfly_self{.version = dryfly::wire::version};
}

namespace dryfly::preload {

namespace {

constexpr std::uint32_t undecided = 99;
std::atomic<std::uint32_t> current_phase{undecided};
std::atomic<std::uint64_t> monotonic_base_ns{monotonic_base_s * 1'000'000'000U};
std::atomic<pid_t> main_thread{0};
std::atomic<std::uint64_t> last_read_cost_ps{clock_read_before_run_ps};
__attribute__((tls_model("initial-exec"))) thread_local pid_t own_thread = 0;

void after_fork_in_child() {
  own_thread = 0;
  current_phase.store(static_cast<std::uint32_t>(Phase::real), std::memory_order_relaxed);
  dryfly_self.attached.store(0, std::memory_order_relaxed);
}

// What copies the process while its NIC has memory of it; a child that has its parent's memory (vfork, posix_spawn,
// system) is none.
void after_fork_in_parent() {
  if (phase() == Phase::running && dryfly_self.page != nullptr) ++dryfly_self.page->times.forks;
}

// A rank dies with the process that started it (a wrapper script, the launcher), and lets the other ranks of the run
// read large payloads from its memory where the Yama module restricts that to relatives.
void tie_to_parent() {
  const pid_t parent = getppid();
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != parent) raise(SIGKILL);  // it died before the kernel knew of our wish
}

void go_virtual() {
  // A clock that was real until now must not run backwards. The base moves in whole millions of seconds, so that the
  // digits below do not depend on when the machine was booted.
  const std::uint64_t million = monotonic_base_s * 1'000'000'000U;
  const std::uint64_t real_now = real::now_ns(CLOCK_MONOTONIC);
  if (real_now >= million) monotonic_base_ns.store((real_now / million + 1) * million, std::memory_order_relaxed);
}

}  // namespace

bool belongs_to_run() {
  const char* channel = getenv("DRYFLY_CHANNEL");
  return channel != nullptr && *channel != 0;
}

Phase phase() {
  std::uint32_t known = current_phase.load(std::memory_order_acquire);
  if (known == undecided) {
    // The first question may come before our constructor, from one of a library that was loaded with the program.
    const bool rank = belongs_to_run() && mpi_is_mapped();
    known = static_cast<std::uint32_t>(rank ? Phase::before : Phase::real);
    current_phase.store(known, std::memory_order_release);
  }
  return static_cast<Phase>(known);
}

void set_phase(Phase phase) { current_phase.store(static_cast<std::uint32_t>(phase), std::memory_order_release); }

void become_rank() {
  if (!belongs_to_run()) return;
  main_thread.store(thread_id(), std::memory_order_relaxed);
  if (phase() != Phase::real) return;
  go_virtual();
  set_phase(Phase::before);
  tie_to_parent();
}

bool on_served_fabric() {
  return phase() == Phase::running && dryfly_self.header != nullptr && dryfly_self.header->served != 0;
}

pid_t thread_id() {
  if (own_thread == 0) own_thread = static_cast<pid_t>(syscall(SYS_gettid));
  return own_thread;
}

pid_t main_thread_id() { return main_thread.load(std::memory_order_relaxed); }

bool on_main_thread() { return thread_id() == main_thread.load(std::memory_order_relaxed); }

std::uint64_t instant() { return dryfly_self.now_ps.load(std::memory_order_relaxed); }

namespace {

void publish() {
  if (phase() == Phase::running && dryfly_self.publish != nullptr) dryfly_self.publish();
}

}  // namespace

namespace {

// What its GPU's streams do up to there comes first.
void pass_to(std::uint64_t at_ps) {
  const bool serves = dryfly_self.serves.load(std::memory_order_relaxed) != 0;
  if (serves && phase() == Phase::running && on_main_thread() && dryfly_self.serving.outside != nullptr) {
    const std::uint64_t clock_ns = computing_clock_ns();
    dryfly_self.serving.outside(at_ps);
    leave_out_since(clock_ns);
  }
}

}  // namespace

namespace {

void come_to(std::uint64_t at_ps) {
  wait_for_clock(at_ps);
  std::uint64_t now = instant();
  if (now >= at_ps) return;  // by another thread, which has told of it
  pass_to(at_ps);
  while (now < at_ps && !dryfly_self.now_ps.compare_exchange_weak(now, at_ps, std::memory_order_relaxed)) {
  }
  publish();
}

}  // namespace

void advance(std::uint64_t ps) {
  const std::uint64_t takes_ps = dryfly_self.duration_ps(ps);
  if (others_may_call()) [[unlikely]]
    return come_to(instant() + takes_ps);
  pass_to(instant() + takes_ps);
  dryfly_self.now_ps.fetch_add(takes_ps, std::memory_order_relaxed);
  publish();
}

void advance_to(std::uint64_t wanted_ps) {
  if (wanted_ps <= instant()) return publish();
  come_to(dryfly_self.noise.resume_ps(wanted_ps));
}

std::uint64_t clock_read_cost_ps() {
  // The header may be unmapped once the run has ended, so the figure is kept.
  if (phase() == Phase::running && dryfly_self.header != nullptr) {
    last_read_cost_ps.store(dryfly_self.header->costs.clock_read_ps, std::memory_order_relaxed);
  }
  return last_read_cost_ps.load(std::memory_order_relaxed);
}

std::uint64_t clock_base_ns(clockid_t clock) {
  switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_REALTIME_ALARM:
    case CLOCK_TAI: {
      static std::atomic<std::uint64_t> epoch_us{default_epoch_us};
      // In microseconds, see wire.hpp; a conductor that sets none leaves the default.
      if (phase() == Phase::running && dryfly_self.header != nullptr && dryfly_self.header->epoch_ps != 0) {
        epoch_us.store(dryfly_self.header->epoch_ps, std::memory_order_relaxed);
      }
      constexpr std::uint64_t leap_ns = 37'000'000'000;  // TAI - UTC since 2017
      return epoch_us.load(std::memory_order_relaxed) * 1000 + (clock == CLOCK_TAI ? leap_ns : 0);
    }
    case CLOCK_PROCESS_CPUTIME_ID:
    case CLOCK_THREAD_CPUTIME_ID:
      return 0;  // an MPI rank polls, so it computes all the time
    default:
      return monotonic_base_ns.load(std::memory_order_relaxed);
  }
}

std::uint64_t duration_ps(const timespec& duration) {
  constexpr time_t longest_s = 10'000'000;  // 64 bits of picoseconds end at 18 million seconds
  if (duration.tv_sec < 0) return 0;
  if (duration.tv_sec >= longest_s) return wire::far_future;
  return static_cast<std::uint64_t>(duration.tv_sec) * 1'000'000'000'000U +
         static_cast<std::uint64_t>(duration.tv_nsec) * 1000;
}

std::uint64_t instant_of(clockid_t clock, const timespec& at) {
  const std::uint64_t base = clock_base_ns(clock);
  timespec since{at.tv_sec - static_cast<time_t>(base / 1'000'000'000U),
                 at.tv_nsec - static_cast<long>(base % 1'000'000'000U)};
  if (since.tv_nsec < 0) {
    since.tv_nsec += 1'000'000'000;
    --since.tv_sec;
  }
  return duration_ps(since);
}

namespace {

// Whoever joins a served fabric is a rank from now on and until it ends. It is nobody's child in particular, so it does
// not die with its parent.
void join_served_fabric() {
  main_thread.store(thread_id(), std::memory_order_relaxed);
  go_virtual();
  pthread_atfork(nullptr, after_fork_in_parent, after_fork_in_child);
  set_phase(Phase::running);
}

__attribute__((constructor)) void start() {
  real::resolve();
  main_thread.store(getpid(), std::memory_order_relaxed);
  dryfly_self.joined = join_served_fabric;
  if (!belongs_to_run()) return;
  refuse_launcher();
  refuse_preloaded_mpi();
  pthread_atfork(nullptr, after_fork_in_parent, after_fork_in_child);
  if (clock_is_virtual()) tie_to_parent();
}

}  // namespace

}  // namespace dryfly::preload
