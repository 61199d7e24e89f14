// A lock that is held for a few instructions, in tables that several threads of a program may look into at once. It
// offers the processor while it waits, for the thread that has it may be off it.
#pragma once

#include <sched.h>

#include <atomic>

namespace dryfly::preload {

class SpinLock {
 public:
  class Hold {
   public:
    explicit Hold(SpinLock& lock) : lock_(lock) {
      while (lock_.locked_.exchange(true, std::memory_order_acquire)) sched_yield();
    }
    ~Hold() { lock_.locked_.store(false, std::memory_order_release); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    SpinLock& lock_;
  };

 private:
  std::atomic<bool> locked_{false};
};

}  // namespace dryfly::preload
