// How fast virtual time passes on a served fabric while nothing is under way: no faster than on the wall. A new
// process, or one that is outside, may be about to act, and a time-out of those that wait means what it says. Why:
// docs/decision/0007-a-served-fabric.md.
#pragma once

#include <chrono>

#include "conductor/clock.hpp"
#include "core/engine/engine.hpp"

namespace dryfly {

class Pace {
 public:
  Pace(Engine& engine, const Clock& clock) : engine_(engine), clock_(clock) {}

  // As far as that, or as the wall has got.
  Instant limit(Instant limit);
  // How long the conductor may sleep: until the next waiting process may go on, or until the next look at those that
  // hold virtual time.
  long nap_ns() const;

 private:
  Engine& engine_;
  const Clock& clock_;
  std::chrono::steady_clock::time_point paced_at_ = std::chrono::steady_clock::now();
};

}  // namespace dryfly
