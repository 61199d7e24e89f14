// Waiting by spinning, while that pays. A step that takes long means that another process has had the processor in
// between; the next waits then go straight to sleep: the scheduler wakes a sleeper sooner than it returns to a spinner
// that has used up its share. Each time it happens twice as many do, and half as many after spinning has gone well for
// a while.
#pragma once

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstdint>

namespace dryfly::wire {

class Spinner {
 public:
  // Takes `pauses` steps without a system call, as long as nobody else is seen on this processor; all other steps
  // offer it to whoever is.
  explicit Spinner(int pauses) : pauses_(pauses) {}

  // One of so many that share the processors: the more, the less a spin is worth.
  void share_with(std::uint32_t processes) {
    sleeps_min_ = std::clamp(processes * sleeps_for_each, sleeps_min_, crowd_sleeps);
    sleeps_ = sleeps_min_;
  }

  // Waits for so many steps, or until `done`: true if it is.
  template <class Done>
  bool spin(int steps, Done done) {
    if (sleeps_due_ != 0) {
      --sleeps_due_;
      return done();
    }
    std::int64_t last = now_ns();
    for (int taken = 0; taken < steps; ++taken) {
      if (done()) {
        if (++good_spins_ == good_for_each * sleeps_) {
          good_spins_ = 0;
          sleeps_ = std::max(sleeps_ / 2, sleeps_min_);
        }
        return true;
      }
      const bool yields = taken >= pauses_ || in_company_;
      yields ? static_cast<void>(sched_yield()) : pause();
      const std::int64_t now = now_ns();
      if (yields) in_company_ = now - last > yield_alone_ns;
      if (now - last > gap_max_ns) {
        good_spins_ = 0;
        sleeps_due_ = sleeps_;
        sleeps_ = std::min(2 * sleeps_, sleeps_max);
        return done();
      }
      last = now;
    }
    return done();
  }
  // Spinning has cost the processor lately, so that waits go straight to sleep.
  bool is_resting() const { return sleeps_due_ != 0; }
  // Others had the processor when it was last offered.
  bool in_company() const { return in_company_; }

 private:
  static constexpr std::int64_t gap_max_ns = 100'000;
  // A yield to nobody takes 500 ns on the virtual machine of docs/decision/0001, one to another process 1,500 and more.
  static constexpr std::int64_t yield_alone_ns = 1'300;
  static constexpr std::uint32_t sleeps_for_each = 8;
  static constexpr std::uint32_t crowd_sleeps = 512;
  static constexpr std::uint32_t sleeps_max = 4096;
  static constexpr std::uint32_t good_for_each = 4;

  static std::int64_t now_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
  }

  static void pause() {
#if defined(__x86_64__)
    for (int i = 0; i < 4; ++i) __builtin_ia32_pause();
#else
    sched_yield();
#endif
  }

  int pauses_;
  bool in_company_ = false;  // the last yield was taken
  std::uint32_t sleeps_min_ = 16;
  std::uint32_t sleeps_ = sleeps_min_;  // after the next long step
  std::uint32_t sleeps_due_ = 0;
  std::uint32_t good_spins_ = 0;  // since `sleeps_` has changed
};

}  // namespace dryfly::wire
