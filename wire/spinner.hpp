// Waiting by spinning, while that pays. A step that takes long means that another process has had the processor in
// between; the next waits then go straight to sleep: the scheduler wakes a sleeper sooner than it returns to a spinner
// that has used up its share.
#pragma once

#include <time.h>

#include <cstdint>

namespace dryfly::wire {

class Spinner {
 public:
  // Takes `step`s until `done` or the number of steps is reached; true if done.
  template <class Done, class Step>
  bool spin(int steps, Done done, Step step) {
    if (sleeps_due_ != 0) {
      --sleeps_due_;
      return done();
    }
    std::int64_t last = now_ns();
    for (int taken = 0; taken < steps; ++taken) {
      if (done()) return true;
      step();
      const std::int64_t now = now_ns();
      if (now - last > gap_max_ns) {
        sleeps_due_ = sleeps_after_gap;
        return done();
      }
      last = now;
    }
    return done();
  }

 private:
  static constexpr std::int64_t gap_max_ns = 100'000;
  static constexpr std::uint32_t sleeps_after_gap = 500;

  static std::int64_t now_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
  }

  std::uint32_t sleeps_due_ = 0;
};

}  // namespace dryfly::wire
