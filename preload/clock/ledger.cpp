#include "preload/clock/ledger.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/unit/check.hpp"
#include "preload/clock/software.hpp"
#include "preload/clock/threads.hpp"
#include "preload/clock/workers.hpp"
#include "preload/clock/yield_calls.hpp"
#include "preload/mpi/call_names.hpp"
#include "preload/mpi/call_record.hpp"
#include "preload/mpi/spin_lock.hpp"
#include "preload/rank.hpp"
#include "preload/real.hpp"
#include "wire/futex.hpp"

namespace dryfly::preload {

static_assert(call_name_count <= wire::call_profile_count);

namespace {

using rank::CallMode;

struct Ledger {
  std::atomic<std::uint32_t> active{0};  // threads inside MPI
  std::uint32_t active_in[4] = {};       // by CallMode
  std::uint64_t changed_ps = 0;          // when `active` last left or reached 0
  std::uint64_t waited_ps = 0;           // Self::waited_ps then
  Callers callers = Callers::main_thread;
};
constinit Ledger ledger;

// The threads that call MPI, where there are several. `looked`: how much of the rank's events there was when it last
// looked for some in vain, plus `some_events`; `not_yet` if it may have found one or has not looked.
struct Visitor {
  std::atomic<pid_t> thread{0};  // 0: free
  std::atomic<bool> inside{false};
  std::atomic<std::uint64_t> looked{0};
  std::uint64_t at_last_round = 0;
  std::uint32_t polls_since_offer = 0;
  std::atomic<std::uint64_t> left_ps{0};
  std::atomic<std::uint64_t> left_cpu_ns{0};
};
constexpr std::uint64_t not_yet = 0;
constexpr std::uint64_t some_events = 1;
constexpr std::uint32_t polls_before_offer = 4;  // and more than a turn of a loop has that makes offers
constinit Visitor visitors[64];
__attribute__((tls_model("initial-exec"))) thread_local constinit Visitor* own_place = nullptr;

bool is_inside(const Visitor& visitor) { return visitor.inside.load(); }
Visitor* place_inside() { return own_place != nullptr && is_inside(*own_place) ? own_place : nullptr; }
std::atomic<bool> others_have_called{false};  // beside the main thread, where all do so in turn
std::atomic<bool> library_offers{false};      // whoever waits in it offers it to others between two looks
const Visitor* last_place = nullptr;          // of the last call
constinit SpinLock ledger_lock;

// Where threads are in calls of different modes, the one that must not jump decides.
CallMode mode_now() {
  for (const CallMode mode : {CallMode::outside, CallMode::testing, CallMode::blocking}) {
    if (ledger.active_in[static_cast<std::uint32_t>(mode)] != 0) return mode;
  }
  return CallMode::unmarked;
}

void set_mode() { dryfly_self.call_mode.store(static_cast<std::uint32_t>(mode_now()), std::memory_order_relaxed); }

std::uint64_t events_now() { return dryfly_self.page->event_tail.load() + some_events; }

// Who comes to the same place of its loop for the second time has looked between, and found nothing to go on with.
void note_round() {
  Visitor* const own = place_inside();
  if (own == nullptr) return;
  const std::uint64_t now = events_now();
  own->looked.store(std::exchange(own->at_last_round, now) == now ? now : not_yet);
}

// A thread keeps its place; those of threads that are gone are free again.
Visitor* find_place() {
  for (Visitor& each : visitors) {
    const pid_t thread = each.thread.load(std::memory_order_relaxed);
    if (thread == 0 || (!is_inside(each) && syscall(SYS_tgkill, getpid(), thread, 0) != 0)) return &each;
  }
  return nullptr;
}

void take_place(CallMode mode) {
  const bool may_matter = ledger.callers == Callers::all_in_turn && !on_main_thread();
  if (!dryfly_self.has_threads() && !may_matter) return;
  if (may_matter) others_have_called.store(true, std::memory_order_relaxed);
  if (own_place == nullptr) {
    own_place = find_place();
    if (own_place == nullptr) return;
    own_place->thread.store(thread_id(), std::memory_order_release);
  }
  own_place->looked.store(not_yet, std::memory_order_relaxed);
  own_place->at_last_round = not_yet;
  own_place->inside.store(true, std::memory_order_release);
  if (std::exchange(last_place, own_place) != own_place || mode != CallMode::testing) {
    dryfly_self.threads.turns.fetch_add(1, std::memory_order_relaxed);
  }
}

void leave_place() {
  Visitor* const own = place_inside();
  if (own == nullptr) return;
  own->left_ps.store(instant(), std::memory_order_relaxed);
  own->left_cpu_ns.store(real::now_ns(CLOCK_THREAD_CPUTIME_ID), std::memory_order_relaxed);
  own->inside.store(false, std::memory_order_release);
}

void note_several_threads() {
  dryfly_self.thread_multiple.store(1, std::memory_order_relaxed);
  dryfly_self.page->times.several_threads = 1;
}

void close_call(std::uint32_t index, CallMode mode, std::uint64_t entered_ps, std::uint64_t now, std::uint64_t bytes) {
  DRYFLY_CHECK(ledger.active_in[static_cast<std::uint32_t>(mode)] != 0);
  wire::RankPage& page = *dryfly_self.page;
  wire::CallProfile& profile = page.profile[index];
  ++profile.count;
  profile.bytes += bytes;
  profile.time_ps += now - entered_ps;
  --ledger.active_in[static_cast<std::uint32_t>(mode)];
  leave_place();
  set_mode();
  if (calls_are_recorded()) {
    record_call(
        {entered_ps, now, dryfly_self.waited_ps.load(std::memory_order_relaxed) - ledger.waited_ps, bytes, index});
  }
  if (ledger.active.fetch_sub(1, std::memory_order_relaxed) != 1) return;
  const std::uint64_t inside = now - ledger.changed_ps;
  std::uint64_t waited = dryfly_self.waited_ps.load(std::memory_order_relaxed) - ledger.waited_ps;
  if (waited > inside) waited = inside;
  page.times.waiting_ps += waited;
  page.times.communicating_ps += inside - waited;
  ledger.changed_ps = now;
  page.call_index.store(0, std::memory_order_relaxed);
}

}  // namespace

void open_ledger(Callers callers) {
  const SpinLock::Hold hold(ledger_lock);
  ledger.callers = callers;
  ledger.changed_ps = instant();
  ledger.waited_ps = dryfly_self.waited_ps.load(std::memory_order_relaxed);
}

bool others_may_call() {
  return dryfly_self.has_threads() || (others_have_called.load(std::memory_order_relaxed) && on_main_thread());
}

void let_several_threads_wait() {
  if (dryfly_self.has_threads()) return;
  const SpinLock::Hold hold(ledger_lock);
  note_several_threads();
  dryfly_self.threads.recall.store(1, std::memory_order_seq_cst);
  wire::futex_wake(dryfly_self.page->released);
}

std::uint64_t enter_call(std::uint32_t index, CallMode mode) {
  const SpinLock::Hold hold(ledger_lock);
  wire::RankPage& page = *dryfly_self.page;
  const bool by_others = ledger.callers == Callers::main_thread && !on_main_thread();  // though it is not allowed to
  if (by_others || (ledger.callers == Callers::several && program_has_threads())) note_several_threads();
  const std::uint64_t now = instant();
  if (ledger.active.load(std::memory_order_relaxed) == 0) {
    page.times.computing_ps += now - ledger.changed_ps;
    ledger.changed_ps = now;
    ledger.waited_ps = dryfly_self.waited_ps.load(std::memory_order_relaxed);
  }
  if (ledger.active.fetch_add(1, std::memory_order_relaxed) == 0) begin_software(index);
  ++ledger.active_in[static_cast<std::uint32_t>(mode)];
  take_place(mode);
  set_mode();
  page.call_index.store(index + 1, std::memory_order_relaxed);
  page.call_count.fetch_add(1, std::memory_order_relaxed);
  return now;
}

void leave_call(std::uint32_t index, CallMode mode, std::uint64_t entered_ps, std::uint64_t bytes) {
  {
    const SpinLock::Hold hold(ledger_lock);
    if (ledger.active.load(std::memory_order_relaxed) == 1) end_software();
    close_call(index, mode, entered_ps, instant(), bytes);
  }
  hold_others_back();
  if (dryfly_self.has_threads()) end_turn();
}

void leave_last_call(std::uint32_t index, CallMode mode, std::uint64_t entered_ps) {
  const SpinLock::Hold hold(ledger_lock);
  close_call(index, mode, entered_ps, entered_ps, 0);
}

void note_call(std::uint32_t index) {
  const SpinLock::Hold hold(ledger_lock);
  ++dryfly_self.page->profile[index].count;
  dryfly_self.page->call_count.fetch_add(1, std::memory_order_relaxed);
}

bool thread_inside_mpi(pid_t id) {
  return std::ranges::any_of(visitors,
                             [&](const Visitor& each) { return each.thread.load() == id && is_inside(each); });
}

std::optional<LeftMpi> left_mpi(pid_t id) {
  for (const Visitor& each : visitors) {
    if (each.thread.load() != id || is_inside(each)) continue;
    return LeftMpi{each.left_ps.load(), each.left_cpu_ns.load()};
  }
  return std::nullopt;
}

void note_left() {
  if (own_place == nullptr || is_inside(*own_place)) return;
  own_place->left_cpu_ns.store(real::now_ns(CLOCK_THREAD_CPUTIME_ID), std::memory_order_relaxed);
}

bool others_have_left_mpi() {
  return std::ranges::any_of(
      visitors, [](const Visitor& each) { return each.thread.load() != 0 && &each != own_place && !is_inside(each); });
}

void note_offer() {
  library_offers.store(true, std::memory_order_relaxed);
  if (own_place != nullptr) own_place->polls_since_offer = 0;
  note_round();
}

void note_look() {
  if (!library_offers.load(std::memory_order_relaxed)) note_round();
}

bool has_looked_in_vain(pid_t id) {
  const std::uint64_t now = events_now();
  return std::ranges::any_of(visitors, [&](const Visitor& each) {
    return each.thread.load() == id && is_inside(each) && each.looked.load() == now;
  });
}

bool another_is_to_look() {
  if (!library_offers.load(std::memory_order_relaxed)) return false;
  if (own_place != nullptr && ++own_place->polls_since_offer > polls_before_offer) return false;
  const std::uint64_t now = events_now();
  return std::ranges::any_of(visitors, [&](const Visitor& each) {
    return &each != own_place && is_inside(each) && each.looked.load() != now;
  });
}

std::uint64_t quiet_calls() {
  if (inside_mpi()) return not_quiet;
  return phase() == Phase::running ? dryfly_self.page->call_count.load(std::memory_order_relaxed) : 0;
}

std::uint32_t threads_inside_mpi() { return ledger.active.load(std::memory_order_relaxed); }

}  // namespace dryfly::preload
