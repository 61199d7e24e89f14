// Who holds virtual time on a served fabric and does not come to the provider is let go: one that has slept in the
// kernel for a while, all of its threads, and one that has computed for long (or asks a socket again and again). The
// rules, and why they are so: docs/decision/0007-a-served-fabric.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "conductor/clock.hpp"
#include "conductor/rank.hpp"

namespace dryfly {

class Holders {
 public:
  Holders(std::vector<Rank>& ranks, Clock& clock) : ranks_(ranks), clock_(clock), seen_(ranks.size()) {}

  void look();
  // Its process has ended; the next is another.
  void forget(RankId rank) { seen_[rank.value] = {}; }

 private:
  using WallClock = std::chrono::steady_clock;
  struct Seen {
    std::uint64_t cpu_ns = 0;
    std::uint64_t mark = 0;  // changes when it comes to the provider
    WallClock::time_point since{};
  };

  void look_at(Rank& rank, WallClock::time_point now);
  void let_go_of(Rank& rank);

  std::vector<Rank>& ranks_;
  Clock& clock_;
  std::vector<Seen> seen_;  // by rank
  WallClock::time_point looked_at_ = WallClock::now();
};

}  // namespace dryfly
