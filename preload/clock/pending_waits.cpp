#include "preload/clock/pending_waits.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace dryfly::preload {

namespace {

constexpr int places = 64;
constexpr std::int32_t being_filled = -1;

struct Place {
  std::atomic<std::int32_t> thread;  // 0: free
  std::atomic<std::uint64_t> deadline_ps;
};

Place waits[places];
std::atomic<std::uint32_t> ended_waits{0};

bool is_alive(std::int32_t thread) { return syscall(SYS_tgkill, getpid(), thread, 0) == 0; }

}  // namespace

PendingWait::PendingWait(std::uint64_t deadline_ps)
    : deadline_ps_(deadline_ps), place_(-1), ended_(ended_waits.load()) {
  for (int place = 0; place < places && place_ < 0; ++place) {
    std::int32_t expected = 0;
    if (waits[place].thread.compare_exchange_strong(expected, being_filled)) place_ = place;
  }
  if (place_ < 0) return;
  waits[place_].deadline_ps.store(deadline_ps);
  waits[place_].thread.store(static_cast<std::int32_t>(syscall(SYS_gettid)));
}

// Counted before the place is free: whoever finds it free finds the count changed.
PendingWait::~PendingWait() {
  ended_waits.fetch_add(1);
  if (place_ >= 0) waits[place_].thread.store(0);
}

bool PendingWait::is_first() const {
  for (int place = 0; place < places; ++place) {
    std::int32_t thread = waits[place].thread.load();
    if (place == place_ || thread == 0 || thread == being_filled || waits[place].deadline_ps.load() >= deadline_ps_) {
      continue;
    }
    if (is_alive(thread)) return false;
    waits[place].thread.compare_exchange_strong(thread, 0);
  }
  return true;
}

bool PendingWait::another_came_out() {
  const std::uint32_t before = ended_;
  ended_ = ended_waits.load();
  return ended_ != before;
}

}  // namespace dryfly::preload
