// Where spinning does not pay, because others want the processors too, each hand-over is a wake-up, and one from
// processor to processor takes several times as long as one on the same (docs/decision/0001). While ranks act one at a
// time the second processor is of no use to them, so they sleep where the conductor is.
#pragma once

#include <sched.h>

#include <cstdint>

#include "wire/wire.hpp"

namespace dryfly {

class Gathering {
 public:
  explicit Gathering(wire::SegmentHeader& header) : header_(header) {}

  // The conductor goes to sleep, and so many ranks have something to do meanwhile.
  void sleeps_beside(std::uint32_t busy);
  // From now on they sleep on this processor,
  void gather();
  // or where the scheduler puts them.
  void disperse();

 private:
  // Phases in which ranks act together are short or long, so it takes a while to begin and less to end.
  static constexpr std::uint32_t begin_at = 64;
  static constexpr std::uint32_t crowd_weight = 8;

  wire::SegmentHeader& header_;
  cpu_set_t allowed_{};  // of the conductor, while it is bound
  std::uint32_t alone_ = 0;
  bool is_on_ = false;
};

}  // namespace dryfly
