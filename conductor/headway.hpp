// How far virtual time has come, said about every second of wall time while a run lasts: `reached PICOSECONDS`, since
// its start. It changes nothing that is simulated.
#pragma once

#include <chrono>
#include <cstdint>

#include "conductor/status.hpp"
#include "core/unit/unit.hpp"

namespace dryfly {

class Headway {
 public:
  explicit Headway(StatusLine status) : status_(status) {}

  void start(Instant at) { start_ = at; }
  void end() { start_ = never; }
  // The conductor has done something, or has slept: only then, and now and then, the wall clock is looked at.
  void look(Instant reached, bool slept) {
    if (start_ == never || (!slept && ++looks_ % looks_per_reading != 0)) return;
    read_clock(reached);
  }

 private:
  static constexpr std::uint32_t looks_per_reading = 1024;

  void read_clock(Instant reached);

  StatusLine status_;
  Instant start_ = never;
  std::chrono::steady_clock::time_point said_ = std::chrono::steady_clock::now();
  std::uint32_t looks_ = 0;
};

}  // namespace dryfly
