// How far a thread has come, for another that waits for it: awake for about as long as waking it would take, then
// asleep, so that a thread with nothing to do leaves its core to others.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>

namespace dryfly::motif {

class Progress {
 public:
  std::uint64_t count() const { return count_.load(std::memory_order_acquire); }
  // Whoever raises it has done so much, and what it wrote before can be read by who sees that.
  void raise(std::uint64_t count) {
    count_.store(count);
    if (!sleeps_.load()) return;
    const std::lock_guard lock(mutex_);
    raised_.notify_one();
  }
  void wait_for(std::uint64_t least) {
    for (int look = 0; look < looks_awake; ++look) {
      if (count() >= least) return;
      rest();
    }
    std::unique_lock lock(mutex_);
    sleeps_.store(true);
    raised_.wait(lock, [&] { return count_.load() >= least; });
    sleeps_.store(false);
  }

 private:
  static constexpr int looks_awake = 2000;  // some 40 us

  static void rest() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
  }

  alignas(64) std::atomic<std::uint64_t> count_{0};
  // Stored before the count is looked at, as the count is before this: one of both sides sees the other's.
  std::atomic<bool> sleeps_{false};
  std::mutex mutex_;
  std::condition_variable raised_;
};

}  // namespace dryfly::motif
