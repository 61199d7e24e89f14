// How much numbers have grown in equal steps of time: each number that grew in a step, and by how much. The steps begin
// at a microsecond and double whenever the run outgrows them, so that the record stays small however long the run is.
#pragma once

#include <cstdint>
#include <vector>

#include "core/unit/unit.hpp"

namespace dryfly {

class StepRecord {
 public:
  static constexpr std::size_t most_steps = 512;

  struct Growth {
    std::uint64_t key = 0;
    std::uint64_t by = 0;
  };

  explicit StepRecord(Instant start) : start_(start) {}

  // When the open step ends: what has grown until then belongs to it.
  Instant step_end() const { return start_ + Duration{(steps_.size()) * step_ps_}; }
  // Makes steps longer until that of `now` is one of those that there may be.
  void make_room(Instant now);
  // All of these, in the order of their keys, belong to the open step.
  void add(const std::vector<Growth>& grown);
  // The same, and it ends. There has to be room for the next one.
  void close_step(const std::vector<Growth>& grown);

  std::uint64_t step_ps() const { return step_ps_; }
  const std::vector<std::vector<Growth>>& steps() const { return steps_; }

 private:
  static std::vector<Growth> sum(const std::vector<Growth>& a, const std::vector<Growth>& b);
  void double_steps();

  Instant start_;
  std::uint64_t step_ps_ = 1'000'000;
  std::vector<std::vector<Growth>> steps_{1};  // the last is the open one
};

}  // namespace dryfly
