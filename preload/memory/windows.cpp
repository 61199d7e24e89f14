#include "preload/memory/windows.hpp"

#include <stdlib.h>

#include <algorithm>

#include "preload/rank.hpp"

namespace dryfly::preload {

namespace {

using rank::CallMode;
using wire::GateKind;

constexpr std::uint64_t oldest_view_ps = 1'000'000;  // 1 us of virtual time
std::uint64_t left_ps = 0;                           // when the last MPI call came back
__attribute__((tls_model("initial-exec"))) thread_local constinit bool makes_one = false;

bool watching() { return dryfly_self.watches_memory.load(std::memory_order_relaxed) != 0; }

bool makes_window(Call call) {
  switch (call) {
    case Call::Win_allocate:
    case Call::Win_allocate_c:
    case Call::Win_allocate_shared:
    case Call::Win_allocate_shared_c:
    case Call::Win_create:
    case Call::Win_create_c:
    case Call::Win_create_dynamic:
      return true;
    default:
      return false;
  }
}

bool waits_inside(Call call) {
  switch (call) {
    case Call::Accumulate:
    case Call::Accumulate_c:
    case Call::Compare_and_swap:
    case Call::Fetch_and_op:
    case Call::Get:
    case Call::Get_c:
    case Call::Get_accumulate:
    case Call::Get_accumulate_c:
    case Call::Put:
    case Call::Put_c:
    case Call::Raccumulate:
    case Call::Raccumulate_c:
    case Call::Rget:
    case Call::Rget_c:
    case Call::Rget_accumulate:
    case Call::Rget_accumulate_c:
    case Call::Rput:
    case Call::Rput_c:
    case Call::Win_post:
      return true;
    default:
      return false;
  }
}

// Calls that find everything in the rank's own memory come to no gate of their own, and may be a loop.
bool view_is_old() {
  const wire::RankPage& page = *dryfly_self.page;
  const std::uint64_t seen_ps = std::max(page.gate.at_ps, page.release_clock_ps.load(std::memory_order_relaxed));
  return instant() >= seen_ps + oldest_view_ps;
}

}  // namespace

CallMode mode_with_windows(Call call, CallMode mode) {
  return watching() && waits_inside(call) ? CallMode::blocking : mode;
}

void settle_windows(Call call) {
  if (watching()) {
    if (instant() != left_ps || view_is_old()) dryfly_self.gate(GateKind::poll);
  } else if (makes_window(call) && getenv("DRYFLY_WATCH_WINDOWS") != nullptr) {
    dryfly_self.page->watches_memory.store(1, std::memory_order_seq_cst);
    dryfly_self.watches_memory.store(1, std::memory_order_relaxed);
    dryfly_self.gate(GateKind::drain);  // the conductor knows of it when this returns
    dryfly_self.gate(GateKind::poll);
  }
  makes_one = watching() && makes_window(call);
}

void leave_windows() {
  left_ps = instant();
  makes_one = false;
}

bool makes_watched_window() { return makes_one; }

}  // namespace dryfly::preload
