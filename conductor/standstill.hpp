// A job in which nothing happens any more but that some ranks look for messages, one call after the other: MPI_Iprobe
// or MPI_Test in a loop while the others wait, in MPI_Finalize, say. Whether they compute between, or end their loop by
// a count or a clock, cannot be known, so it is said and not ended. A rank that looks within one call for ever is the
// Watchdog's (look_at_peeks).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "conductor/batons.hpp"
#include "conductor/clock.hpp"
#include "conductor/job_traffic.hpp"
#include "conductor/rank.hpp"
#include "conductor/status.hpp"

namespace dryfly {

// The name of the MPI call that a rank is in, by its number in the page.
std::string call_name(std::uint32_t index);

class Standstill {
 public:
  Standstill(const std::vector<Rank>& ranks, const Clock& clock, const Batons& batons, const JobTraffic& job,
             const StatusLine& status)
      : ranks_(ranks), clock_(clock), batons_(batons), job_(job), status_(status), last_(ranks.size()) {}

  // To be asked now and then.
  void look();

 private:
  using WallClock = std::chrono::steady_clock;
  struct Last {
    std::uint64_t calls = 0;
    std::uint32_t call = 0;  // the last one that it was seen in
    bool looks = false;
  };

  bool only_looks_since_last();
  void say() const;

  const std::vector<Rank>& ranks_;
  const Clock& clock_;
  const Batons& batons_;
  const JobTraffic& job_;
  const StatusLine& status_;
  std::vector<Last> last_;  // by rank
  std::uint64_t others_ = 0;
  std::uint64_t writes_ = 0;
  WallClock::time_point looked_at_ = WallClock::now();
  WallClock::duration lasts_{};  // wall time in which this was looked at, as the Watchdog counts it
  bool said_ = false;
};

}  // namespace dryfly
