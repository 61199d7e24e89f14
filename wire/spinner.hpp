// Waiting by spinning, while that pays. A step that takes long means that another process has had the processor in
// between; for a while waits then go straight to sleep: the scheduler wakes a sleeper sooner than it returns to a
// spinner that has used up its share. Each time it happens the while is twice as long, and half as long after spinning
// has gone well. It is a time, not a number of waits: those of ranks that sleep may end before anybody has to wait.
#pragma once

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstdint>

namespace dryfly::wire {

struct MonotonicClock {
  static std::int64_t now_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
  }
};

// Another clock is for tests.
template <class Clock = MonotonicClock>
class BasicSpinner {
 public:
  // Takes `pauses` steps without a system call, as long as nobody else is seen on this processor; all other steps
  // offer it to whoever is.
  explicit BasicSpinner(int pauses) : pauses_(pauses) {}

  // One of so many that share the processors: the more, the less a spin is worth.
  void share_with(std::uint32_t processes) {
    rest_min_ns_ = std::clamp(processes * rest_for_each_ns, rest_first_ns, rest_crowd_ns);
    rest_ns_ = rest_min_ns_;
  }

  // Waits for so many steps, or until `done`: true if it is.
  template <class Done>
  bool spin(int steps, Done done) {
    if (done()) return true;
    std::int64_t last = now_ns();
    if (last < rests_until_ns_) return false;
    for (int taken = 0; taken < steps; ++taken) {
      const bool yields = taken >= pauses_ || in_company_;
      yields ? static_cast<void>(sched_yield()) : pause();
      const std::int64_t now = now_ns();
      if (yields) in_company_ = now - last > yield_alone_ns;
      if (now - last > gap_max_ns) {
        good_since_ns_ = rests_until_ns_ = now + rest_ns_;
        rest_ns_ = std::min(2 * rest_ns_, rest_max_ns);
        return done();
      }
      last = now;
      if (done()) break;
    }
    if (last - good_since_ns_ > good_for_each * rest_ns_) {
      good_since_ns_ = last;
      rest_ns_ = std::max(rest_ns_ / 2, rest_min_ns_);
    }
    return done();
  }
  // Spinning has cost the processor lately, so that waits go straight to sleep.
  bool is_resting() const { return rests_until_ns_ != 0 && now_ns() < rests_until_ns_; }

  static std::int64_t now_ns() { return Clock::now_ns(); }

 private:
  // Another process takes at least a slice of the scheduler's, some milliseconds; what a hypervisor takes is shorter.
  static constexpr std::int64_t gap_max_ns = 1'000'000;
  // A yield to nobody takes 500 ns on the virtual machine of docs/decision/0001, one to another process 1,500 and more.
  static constexpr std::int64_t yield_alone_ns = 1'300;
  static constexpr std::int64_t rest_first_ns = 1'000'000;
  static constexpr std::int64_t rest_for_each_ns = 250'000;
  static constexpr std::int64_t rest_crowd_ns = 64'000'000;
  static constexpr std::int64_t rest_max_ns = 64'000'000;
  static constexpr std::int64_t good_for_each = 4;

  static void pause() {
#if defined(__x86_64__)
    for (int i = 0; i < 4; ++i) __builtin_ia32_pause();
#else
    sched_yield();
#endif
  }

  int pauses_;
  bool in_company_ = false;  // the last yield was taken
  std::int64_t rest_min_ns_ = rest_first_ns;
  std::int64_t rest_ns_ = rest_min_ns_;  // after the next long step
  std::int64_t rests_until_ns_ = 0;
  std::int64_t good_since_ns_ = 0;
};
using Spinner = BasicSpinner<>;

}  // namespace dryfly::wire
