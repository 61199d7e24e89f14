// MPICH offers the processor after every turn of its progress loop. Natively that is
// kind to others; here a blocking call sleeps at the gate whenever it has to wait, and the offer would hand the
// processor to whoever else is on the box just when the network stands still for this rank. So within a blocking call
// of a rank with one thread the MPI library's sched_yield does nothing. It changes no clock and no result.
//
// Where the ranks of a node talk through memory, the library has barriers that spin on a word of it and never come to a
// gate: the one for a segment that it shares out. Whoever spins has the node's baton, without which nobody else moves;
// so after many offers in a row it waits for the others as an empty poll does.
//
// Several threads take the library's lock in turn, and MPICH 5 offers the processor while it has given that up. A
// thread that sleeps for the lock takes longer to wake than the offer lasts: the one that waits for the network would
// have the lock back first, again and again, and each time move the rank's clock on. So an offer lasts until each of
// the others that are inside MPI and make no offer themselves has had a turn, and no longer than it takes to wake.
#include "preload/clock/yield_calls.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

#include "preload/clock/common_clock.hpp"
#include "preload/clock/ledger.hpp"
#include "preload/clock/progress_rest.hpp"
#include "preload/export.hpp"
#include "preload/mpi/loaded_code.hpp"
#include "preload/rank.hpp"
#include "preload/real.hpp"
#include "rank/kernel_call.hpp"

namespace dryfly::preload {

namespace {

LoadedCode mpi_library;  // looked up at its first yield, after MPI_Init

bool is_mpi_library(const void* return_address) { return mpi_library.has(return_address, "PMPI_Recv"); }

bool waits_at_the_gate() {
  return dryfly_self.attached.load(std::memory_order_relaxed) != 0 &&
         dryfly_self.call_mode.load(std::memory_order_relaxed) ==
             static_cast<std::uint32_t>(rank::CallMode::blocking) &&
         dryfly_self.thread_multiple.load(std::memory_order_relaxed) == 0;
}

// What a turn of the progress loop or of a spin before it sleeps may make, and more.
constexpr std::uint32_t offers_before_wait = 1000;
std::uint32_t offers = 0;
std::uint32_t gates_seen = 0;

void wait_for_the_node() {
  if (dryfly_self.header->nodes_share_memory == 0 || !on_main_thread() || phase() != Phase::running) return;
  const std::uint32_t gates = dryfly_self.page->gate.count.load(std::memory_order_relaxed);
  if (gates != gates_seen) offers = 0;
  gates_seen = gates;
  if (++offers < offers_before_wait) return;
  offers = 0;
  const std::uint64_t before = instant();
  dryfly_self.gate(wire::GateKind::wait);
  dryfly_self.has_acted.store(0, std::memory_order_relaxed);
  dryfly_self.waited_ps.fetch_add(instant() - before, std::memory_order_relaxed);
}

constexpr long waking_ns = 20'000;
std::atomic<std::uint32_t> offering{0};  // threads
std::atomic<std::uint32_t> turns{0};     // ended, by an offer or by the end of the MPI call

void wake_those_who_offer() { syscall(SYS_futex, &turns, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0); }

void offer_the_library() {
  note_offer();
  const std::uint32_t offers_now = offering.fetch_add(1) + 1;
  std::uint32_t seen = turns.fetch_add(1) + 1;
  if (offers_now > 1) wake_those_who_offer();
  const std::uint32_t inside = threads_inside_mpi();
  const std::uint32_t enough = seen + (inside > offers_now ? inside - offers_now : 0);
  const std::uint64_t end_ns = real::now_ns(CLOCK_MONOTONIC) + waking_ns;
  for (; static_cast<std::int32_t>(enough - seen) > 0; seen = turns.load()) {
    const std::uint64_t now_ns = real::now_ns(CLOCK_MONOTONIC);
    if (now_ns >= end_ns) break;
    const timespec rest{.tv_sec = 0, .tv_nsec = static_cast<long>(end_ns - now_ns)};
    syscall(SYS_futex, &turns, FUTEX_WAIT_PRIVATE, seen, &rest, nullptr, 0);
  }
  offering.fetch_sub(1);
}

bool shares_the_library() {
  return dryfly_self.attached.load(std::memory_order_relaxed) != 0 &&
         dryfly_self.thread_multiple.load(std::memory_order_relaxed) != 0 && threads_inside_mpi() > 1;
}

}  // namespace

void end_turn() {
  turns.fetch_add(1);
  if (offering.load() != 0) wake_those_who_offer();
  end_rests();
  tell_those_who_ask();
}

}  // namespace dryfly::preload

using namespace dryfly::preload;

DRYFLY_EXPORT int sched_yield() noexcept {
  if (rests_in_progress(__builtin_return_address(0))) return 0;
  if (waits_at_the_gate() && is_mpi_library(__builtin_return_address(0))) {
    wait_for_the_node();
    return 0;
  }
  if (shares_the_library() && is_mpi_library(__builtin_return_address(0))) {
    offer_the_library();
    return 0;
  }
  constexpr long without_arguments[6] = {};
  return static_cast<int>(dryfly::rank::kernel_call(SYS_sched_yield, without_arguments));
}
