// Runs GOAL schedules on a job. A step begins when all that it requires is done, what it irequires has begun, and its
// stream, the core that `cpu` names, is free; of those that could, the one that could first. A calc keeps its stream
// for its time, a send or a receive for what the call costs, and again for what its completion costs
// (docs/model/host-costs.md). A send is done when it is complete at its source, as a request of MPI is; a receive when
// its bytes are in place.
//
// LogGOPSim differs: there an eager send is done when it begins (`o` and `G` being its costs).
#pragma once

#include <cstdint>
#include <string>

#include "core/motif/goal/schedules.hpp"
#include "core/motif/job/driver.hpp"
#include "core/motif/job/job.hpp"

namespace dryfly::motif::goal {

class Player final : public Driver {
 public:
  // `calc_ps`: what one unit of a calc takes. All must outlive it; the schedules are used up.
  Player(Job& job, Schedules& schedules, double calc_ps);

  // Throws SpecError: a step that cannot end, by its line; a calc that takes too long.
  void run(const std::string& file_name);
  // When the last step was done.
  Instant end() const;

 private:
  struct Stream {
    Instant free{};
    Instant woken{};                // the rank will be woken then for it, if that lies ahead
    std::uint32_t first = no_step;  // steps that could begin, and those that are complete and not done
    std::uint32_t last = no_step;
  };

  void wake(Rank& rank) override;
  void completed(Rank& rank, std::uint32_t record, Instant visible) override;

  void line_up(std::uint32_t rank, std::uint32_t step, Instant ready);
  void advance(Rank& rank);
  // Whether its first step has been taken.
  bool take_one(Rank& rank, Stream& stream);
  void begin(Rank& rank, Stream& stream, std::uint32_t step, Instant start);
  void end(Rank& rank, std::uint32_t step, Instant at);
  void release(std::uint32_t rank, std::uint32_t step, Instant at, bool has_begun_only);
  void note(std::uint32_t record, std::uint32_t step);
  Duration duration(const Step& step) const;
  [[noreturn]] void stand_still(const std::string& file_name) const;

  Job& job_;
  Schedules& schedules_;
  const double calc_ps_;
  const Duration lead_;
  LargeVector<std::uint32_t> first_stream_;  // of each rank, and one behind
  LargeVector<Stream> streams_;
  LargeVector<std::uint32_t> left_;     // steps that are not done, of each rank
  LargeVector<std::uint32_t> step_of_;  // of each record under way
  std::uint32_t beginning_ = no_step;   // whose verb is being called
  std::uint32_t advancing_ = any_rank;  // whose steps are being taken
  std::uint64_t ranks_left_ = 0;
  Instant end_{};
};

}  // namespace dryfly::motif::goal
