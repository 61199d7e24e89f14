// The provider's one lock. First come, first served, so that a thread which polls in a loop cannot keep out one that
// wants to send. Waiters give up the processor a few times, then sleep.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "wire/futex.hpp"

namespace dryfly::provider {

class Lock {
 public:
  // False: another thread had it, or stood before us.
  bool acquire() {
    const std::uint32_t ticket = next_.fetch_add(1, std::memory_order_relaxed);
    for (int round = 0;; ++round) {
      const std::uint32_t serving = serving_.load(std::memory_order_seq_cst);
      if (serving == ticket) {
        owner_.store(&here, std::memory_order_relaxed);
        return round == 0;
      }
      if (round < yields_before_sleep) {
        sched_yield();
      } else {
        wire::futex_wait(serving_, serving, nap_ns);
      }
    }
  }
  // False: another has it.
  bool try_acquire() {
    std::uint32_t ticket = serving_.load(std::memory_order_seq_cst);
    if (!next_.compare_exchange_strong(ticket, ticket + 1, std::memory_order_seq_cst)) return false;
    owner_.store(&here, std::memory_order_relaxed);
    return true;
  }
  // Whether this thread has it.
  bool is_mine() const { return owner_.load(std::memory_order_relaxed) == &here; }
  void release() {
    owner_.store(nullptr, std::memory_order_relaxed);
    const std::uint32_t following = serving_.load(std::memory_order_relaxed) + 1;
    serving_.store(following, std::memory_order_seq_cst);
    if (next_.load(std::memory_order_seq_cst) != following) wire::futex_wake(serving_);
  }
  // After fork, in the child: whoever held or waited for the lock does not exist there.
  void reset() {
    owner_.store(nullptr, std::memory_order_relaxed);
    serving_.store(next_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  }

 private:
  static constexpr int yields_before_sleep = 16;
  static constexpr long nap_ns = 10'000'000;
  std::atomic<std::uint32_t> next_{0};
  std::atomic<std::uint32_t> serving_{0};
  // A place of the thread that has it.
  __attribute__((tls_model("initial-exec"))) inline static thread_local constinit char here = 0;
  std::atomic<const char*> owner_{nullptr};
};

}  // namespace dryfly::provider
