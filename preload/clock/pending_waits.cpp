#include "preload/clock/pending_waits.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "preload/rank.hpp"
#include "wire/wire.hpp"

namespace dryfly::preload {

namespace {

constexpr int places = 64;
constexpr std::int32_t being_filled = -1;

struct Place {
  std::atomic<std::int32_t> thread;  // 0: free
  std::atomic<std::uint64_t> deadline_ps;
  std::atomic<bool> of_clock_only;
};

Place waits[places];
std::atomic<std::int32_t> taken{0};  // places
std::atomic<std::uint32_t> ended_waits{0};

bool is_alive(std::int32_t thread) { return syscall(SYS_tgkill, getpid(), thread, 0) == 0; }

}  // namespace

PendingWait::PendingWait(std::uint64_t deadline_ps, Form form)
    : deadline_ps_(deadline_ps), place_(-1), ended_(ended_waits.load()) {
  for (int place = 0; place < places && place_ < 0; ++place) {
    std::int32_t expected = 0;
    if (waits[place].thread.compare_exchange_strong(expected, being_filled)) place_ = place;
  }
  if (place_ < 0) return;
  waits[place_].deadline_ps.store(deadline_ps);
  waits[place_].of_clock_only.store(form == Form::of_clock_only);
  waits[place_].thread.store(thread_id());
  taken.fetch_add(1);
}

// Counted before the place is free: whoever finds it free finds the count changed.
PendingWait::~PendingWait() {
  ended_waits.fetch_add(1);
  if (place_ < 0) return;
  waits[place_].thread.store(0);
  taken.fetch_sub(1);
}

bool PendingWait::is_first() const {
  for (int place = 0; place < places; ++place) {
    std::int32_t thread = waits[place].thread.load();
    if (place == place_ || thread == 0 || thread == being_filled || waits[place].deadline_ps.load() >= deadline_ps_) {
      continue;
    }
    if (is_alive(thread)) return false;
    if (waits[place].thread.compare_exchange_strong(thread, 0)) taken.fetch_sub(1);
  }
  return true;
}

std::uint64_t PendingWait::earliest() {
  std::uint64_t earliest = wire::far_future;
  if (taken.load() == 0) return earliest;
  for (Place& place : waits) {
    std::int32_t thread = place.thread.load();
    if (thread == 0 || thread == being_filled || place.deadline_ps.load() >= earliest) continue;
    if (is_alive(thread)) {
      earliest = place.deadline_ps.load();
    } else if (place.thread.compare_exchange_strong(thread, 0)) {
      taken.fetch_sub(1);
    }
  }
  return earliest;
}

bool PendingWait::is_of_clock_only(pid_t thread) {
  return taken.load() != 0 && std::ranges::any_of(waits, [&](const Place& place) {
           return place.thread.load() == thread && place.of_clock_only.load();
         });
}

bool PendingWait::another_came_out() {
  const std::uint32_t before = ended_;
  ended_ = ended_waits.load();
  return ended_ != before;
}

}  // namespace dryfly::preload
