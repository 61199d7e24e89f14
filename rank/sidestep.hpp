// Two ranks in turn on one processor and the conductor on another are the quickest way to hand over; a rank that shares
// the conductor's processor hands over at a third of the speed, and nothing moves it away as long as the other
// processors are not idle. Such a rank steps aside: it leaves that processor, and is free to be moved anywhere
// afterwards.
#pragma once

#include <dlfcn.h>
#include <sched.h>
#include <sys/syscall.h>

#include <cstdint>

#include "rank/kernel_call.hpp"

namespace dryfly::rank {

class Sidestep {
 public:
  // After a spin. The processor is that on which the conductor spun last, one more than its number.
  void after_spin(std::uint32_t conductor_processor) {
    const int here = processor();
    if (here < 0 || static_cast<std::uint32_t>(here) + 1 != conductor_processor) {
      shared_spins_ = 0;
      return;
    }
    if (++shared_spins_ < patience) return;
    shared_spins_ = 0;
    leave(here);
  }

  // Moves this thread to another processor of those that it may use, which stay the same.
  static void leave(int processor) {
    cpu_set_t allowed;
    if (!get(allowed) || CPU_COUNT(&allowed) < 2) return;
    cpu_set_t others = allowed;
    CPU_CLR(processor, &others);
    if (set(others)) set(allowed);
  }

  // Until the end of its life this thread sleeps on that processor (one more than its number; 0: on any), and may then
  // go where it might before.
  class Stay {
   public:
    explicit Stay(std::uint32_t processor) {
      cpu_set_t one;
      CPU_ZERO(&one);
      if (processor == 0 || !get(allowed_)) return;
      if (CPU_COUNT(&allowed_) == 1) return;
      CPU_SET(processor - 1, &one);
      is_bound_ = CPU_ISSET(processor - 1, &allowed_) && set(one);
    }
    ~Stay() {
      if (is_bound_) set(allowed_);
    }
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;

   private:
    cpu_set_t allowed_{};
    bool is_bound_ = false;
  };

  static constexpr std::uint32_t patience = 32;

 private:
  // Of this computer, where the program and the preload see the simulated node's.
  static bool get(cpu_set_t& to) {
    CPU_ZERO(&to);
    return kernel_call(SYS_sched_getaffinity, {0, sizeof to, reinterpret_cast<long>(&to), 0, 0, 0}) > 0;
  }
  static bool set(const cpu_set_t& to) {
    return kernel_call(SYS_sched_setaffinity, {0, sizeof to, reinterpret_cast<long>(&to), 0, 0, 0}) == 0;
  }
  // A call of the C library reads it without asking the kernel.
  static int processor() {
    static int (*const ask)() = [] {
      void* library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
      return reinterpret_cast<int (*)()>(library != nullptr ? dlsym(library, "sched_getcpu") : nullptr);
    }();
    return ask != nullptr ? ask() : -1;
  }

  std::uint32_t shared_spins_ = 0;  // in a row
};

}  // namespace dryfly::rank
