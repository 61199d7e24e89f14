// Who runs the ranks of a job in place of coroutines: a graph of steps has no line of control that one could follow.
// A driver gives a rank's verbs at any instant from the engine's now on, and hears of each that is complete.
//
// It accounts for what completions cost (CpuCosts::sent and received) itself, when a core has the time for them.
#pragma once

#include <cstdint>

#include "core/unit/unit.hpp"

namespace dryfly::motif {

class Job;
class Rank;

class Driver {
 public:
  // At the instant that the driver has asked for by wake_at(), and for each rank when it begins.
  virtual void wake(Rank& rank) = 0;
  // What the rank has begun as this record is complete, or will be for certain; it can be seen from `visible` on.
  // Comes from within a verb too.
  virtual void completed(Rank& rank, std::uint32_t record, Instant visible) = 0;

 protected:
  ~Driver() = default;
  // Runs the job, once, until nothing is left to happen; the driver knows itself who has not ended.
  void drive(Job& job);
  Instant now() const;
  void wake_at(Rank& rank, Instant at);

 private:
  Job* job_ = nullptr;
};

}  // namespace dryfly::motif
