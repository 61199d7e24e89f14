// The thread is made past the C library: by pthread_create the process would have several threads for good, and
// malloc and stdio would lock in programs that have but one. So it has the main thread's thread-local memory, and
// what it runs may use none of it, errno neither.
#include "preload/clock/herald.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "preload/clock/thread_states.hpp"
#include "preload/rank.hpp"
#include "rank/kernel_call.hpp"
#include "wire/wire.hpp"

namespace dryfly::preload {

namespace {

using rank::bare_kernel_call;

// rank::Telling::bits: the number of the gap, and below it how many nanoseconds of virtual time have been said in it.
// One word, so that whoever ends it and the herald that adds to it each do so in one step.
class Said {
 public:
  static constexpr std::uint64_t none = 0;  // no gap has number 0

  explicit constexpr Said(std::uint64_t bits) : bits_(bits) {}
  static Said of_gap(std::uint64_t number) { return Said{(number % gaps + 1) << told_bits}; }

  std::uint64_t bits() const { return bits_; }
  std::uint64_t told_ps() const { return (bits_ & told_max_ns) * ps_per_ns; }
  Said with(std::uint64_t told_ps) const {
    return Said{(bits_ & ~told_max_ns) | std::min(told_ps / ps_per_ns, told_max_ns)};
  }

 private:
  static constexpr unsigned told_bits = 40;  // 18 minutes; no gap is followed any longer
  static constexpr std::uint64_t told_max_ns = (std::uint64_t{1} << told_bits) - 1;
  static constexpr std::uint64_t gaps = (std::uint64_t{1} << (64 - told_bits)) - 1;
  static constexpr std::uint64_t ps_per_ns = 1000;

  std::uint64_t bits_;
};

struct Herald {
  // As let_herald_tell() has them.
  std::atomic<std::uint64_t> base_ps{0};
  std::atomic<std::uint64_t> from_ns{0};
  std::atomic<std::uint64_t> factor_ppm{1};
  std::atomic<bool> is_dismissed{false};
  std::uint64_t gaps = 0;
  pid_t computes = 0;  // the main thread
  pid_t thread = 0;
};
constinit Herald herald;
alignas(64) char stack[16 * 1024];

// A look takes a processor from somebody for a moment, and the conductor that it wakes does so again: not worth it for
// less than this.
constexpr std::uint64_t nap_min_ns = 100'000;
// The conductor takes a rank for asleep whose process uses no processor time (conductor/watchdog.cpp).
constexpr std::uint64_t nap_max_ns = 100'000'000;

// Says how far the main thread has come. False if that is no more than was said before.
bool tell(wire::Progress& progress) {
  std::uint64_t bits = dryfly_self.telling.bits.load(std::memory_order_acquire);
  if (bits == Said::none) return false;
  const std::uint64_t base_ps = herald.base_ps.load(std::memory_order_relaxed);
  const std::uint64_t from_ns = herald.from_ns.load(std::memory_order_relaxed);
  const std::uint64_t factor_ppm = herald.factor_ppm.load(std::memory_order_relaxed);
  const std::uint64_t cpu_ns = thread_cpu_ns(herald.computes);
  const Said before{bits};
  const Said after = before.with((cpu_ns - std::min(cpu_ns, from_ns)) * factor_ppm / 1000);
  if (after.told_ps() <= before.told_ps()) return false;
  // Fails if the gap is over, and with it what was read of it.
  if (!dryfly_self.telling.bits.compare_exchange_strong(bits, after.bits(), std::memory_order_acq_rel)) return false;
  progress.reached_ps.store(base_ps + after.told_ps(), std::memory_order_seq_cst);
  return true;
}

void ring_bell() {
  wire::SegmentHeader& header = *dryfly_self.header;
  if (header.conductor_asleep.load(std::memory_order_seq_cst) == 0) return;
  header.doorbell.fetch_add(1, std::memory_order_seq_cst);
  bare_kernel_call(SYS_futex, {reinterpret_cast<long>(&header.doorbell), FUTEX_WAKE, 1, 0, 0, 0});
}

void sleep(wire::Progress& progress, std::uint32_t while_asked, std::uint64_t nap_ns) {
  const timespec nap{static_cast<time_t>(nap_ns / 1'000'000'000), static_cast<long>(nap_ns % 1'000'000'000)};
  const timespec* const limit = nap_ns == wire::far_future ? nullptr : &nap;
  bare_kernel_call(SYS_futex, {reinterpret_cast<long>(&progress.asked), FUTEX_WAIT, static_cast<long>(while_asked),
                               reinterpret_cast<long>(limit), 0, 0});
}

// How long until the next look, while somebody waits for that instant. Where nothing new can be said the main thread is
// in MPI, which tells by itself, or has no processor, or sleeps: then longer each time.
class Naps {
 public:
  std::uint64_t next_ns(bool has_told, std::uint64_t to_go_ps) {
    if (!has_told) return nap_ns_ = std::min(2 * nap_ns_, nap_max_ns);
    nap_ns_ = nap_min_ns;
    const std::uint64_t factor_ppm = std::max<std::uint64_t>(1, herald.factor_ppm.load(std::memory_order_relaxed));
    return std::clamp(to_go_ps / factor_ppm * 1000, nap_min_ns, nap_max_ns);
  }
  void begin() { nap_ns_ = nap_min_ns / 2; }

 private:
  std::uint64_t nap_ns_ = nap_min_ns / 2;
};

int serve(void*) {
  bare_kernel_call(SYS_prctl, {PR_SET_TIMERSLACK, 1, 0, 0, 0, 0});
  wire::RankPage& page = *dryfly_self.page;
  wire::Progress& progress = page.progress;
  Naps naps;
  std::uint32_t asked_before = 0;
  for (;;) {
    const std::uint32_t asked = progress.asked.load(std::memory_order_seq_cst);
    if (std::exchange(asked_before, asked) != asked) naps.begin();
    std::uint64_t wanted_ps = page.notify_at_ps.load(std::memory_order_seq_cst);
    std::uint64_t nap_ns = wire::far_future;
    if (wanted_ps != wire::far_future) {
      const bool has_told = tell(progress);
      const std::uint64_t reached_ps = progress.reached_ps.load(std::memory_order_relaxed);
      if (reached_ps < wanted_ps) {
        nap_ns = naps.next_ns(has_told, wanted_ps - reached_ps);
      } else {
        // The conductor may want to hear of a later instant by now.
        page.notify_at_ps.compare_exchange_strong(wanted_ps, wire::far_future, std::memory_order_seq_cst);
        ring_bell();
        wanted_ps = wire::far_future;
      }
    }
    progress.looks_for_ps.store(wanted_ps, std::memory_order_seq_cst);
    if (page.notify_at_ps.load(std::memory_order_seq_cst) >= wanted_ps) sleep(progress, asked, nap_ns);
  }
}

}  // namespace

void open_herald() {
  if (herald.thread != 0) return;
  dryfly_self.telling.hush = hush_herald;
  herald.computes = thread_id();
  // Signals are for the program's threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return;
  constexpr int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
  const int thread = clone(serve, stack + sizeof stack, flags, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (thread < 0) return;
  herald.thread = thread;
  dryfly_self.page->progress.has_herald.store(1, std::memory_order_relaxed);
}

void let_herald_tell(std::uint64_t base_ps, std::uint64_t from_ns, std::uint64_t factor_ppm) {
  if (herald.thread == 0 || herald.is_dismissed.load(std::memory_order_relaxed)) return;
  herald.base_ps.store(base_ps, std::memory_order_relaxed);
  herald.from_ns.store(from_ns, std::memory_order_relaxed);
  herald.factor_ppm.store(factor_ppm, std::memory_order_relaxed);
  dryfly_self.telling.bits.store(Said::of_gap(++herald.gaps).bits(), std::memory_order_seq_cst);
  // Dismissed meanwhile: one of the two sees what the other has written.
  if (herald.is_dismissed.load(std::memory_order_seq_cst)) dryfly_self.end_telling();
}

std::uint64_t hush_herald() {
  if (dryfly_self.telling.bits.load(std::memory_order_relaxed) == Said::none) return 0;
  const Said last{dryfly_self.telling.bits.exchange(Said::none, std::memory_order_seq_cst)};
  return last.told_ps() == 0 ? 0 : herald.base_ps.load(std::memory_order_relaxed) + last.told_ps();
}

std::uint64_t dismiss_herald() {
  herald.is_dismissed.store(true, std::memory_order_seq_cst);
  return hush_herald();
}

pid_t herald_thread() { return herald.thread; }

}  // namespace dryfly::preload
