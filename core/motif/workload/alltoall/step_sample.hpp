// Which steps of a pairwise all-to-all are run where not all can be, and what those say of all. Step s sends from each
// rank to the s-th behind it.
//
// A sample is several stretches of consecutive steps. Ranks come into a stretch as far apart as the distances before
// made them, and a slow pair of nodes stays so for as many steps as it has ranks, so its first steps do not count; how
// many is in ShapeOfSample::usual(), by measurement (docs/model/skeletons.md). Nor do its last two, for the first
// ranks that change over to other distances are early by what the others are late.
//
// What a step takes depends on where its messages go. Within a group, and to the next one, it rises with the distance,
// on both sides; that is the near zone, and stretches in it stand for it alone. Farther away, groups send to one other
// group or divide among two, as the step is a multiple of a group's ranks or lies between two; and the groups behind
// the last one begin again with the first, which is another distance between groups and other cables. So times go up
// and down once in as many steps as a group has ranks, and once over all steps. Each stretch of the far zone lies in a
// part of its own, and all of them evenly over what remains of a step by a group's ranks: multiples of the golden ratio
// do, however many.
//
// The mean of the far zone is that of a fit of both by least squares, if stretches suffice. The bound holds 19 times of
// 20: it is Student's t of the standard error, which comes from what does not fit, or without a fit from what
// neighbours differ by. It is never below a floor, for what no stretch has seen.
#pragma once

#include <cstdint>
#include <vector>

#include "core/motif/job/placement.hpp"

namespace dryfly::motif {

struct Stretch {
  std::uint32_t first = 1;
  std::uint32_t counted = 1;  // the first step that counts
  std::uint32_t counted_last = 1;
  std::uint32_t last = 1;

  std::uint32_t steps_counted() const { return counted_last - counted + 1; }
};

struct ShapeOfSample {
  std::uint32_t stretches = 0;
  std::uint32_t before = 0;   // steps of a stretch that do not count
  std::uint32_t counted = 0;  // and that do
  std::uint32_t spared = 0;   // of `before`, where another stretch of the job came before

  static constexpr std::uint32_t jobs = 2;  // stretches are dealt to them in turn
  static constexpr std::uint32_t behind = 2;
  static ShapeOfSample usual(const Placement& placement, Bytes size);
  // At most: without what is spared.
  std::uint64_t steps() const { return std::uint64_t{stretches} * (before + counted + behind); }
};

class StepSample {
 public:
  // Of the steps 1 to `steps`, about twice as many as count at least. `group_ranks`: most ranks have so many in their
  // group.
  StepSample(const ShapeOfSample& shape, std::uint32_t steps, std::uint32_t group_ranks, std::uint64_t seed);

  const std::vector<Stretch>& stretches() const { return stretches_; }

  struct Mean {
    double value = 0;
    double bound = 0;  // of its error, as a share
  };
  // Of all steps, if each stretch takes so long for a step.
  Mean mean_of(const std::vector<double>& times) const;

 private:
  // Stretches with consecutive numbers, the least distance first.
  struct Zone {
    double share = 0;  // of all steps
    std::uint32_t first = 0;
    std::uint32_t count = 0;
    bool has_wave = false;
    std::uint32_t first_step = 1;
    std::uint32_t last_step = 1;
  };

  void add_near_zone(const ShapeOfSample& shape, std::uint32_t farthest, std::uint32_t count);
  void add_far_zone(const ShapeOfSample& shape, std::uint32_t first, std::uint32_t last, std::uint32_t count);
  void add(const ShapeOfSample& shape, std::uint32_t counted);
  struct Estimate {
    double mean = 0;
    double variance = 0;  // of that
    double freedom = 1;   // degrees
  };
  Estimate of_zone(const Zone& zone, const std::vector<double>& times) const;
  Estimate by_fit(const Zone& zone, const std::vector<double>& times) const;

  const std::uint32_t steps_;
  const std::uint32_t group_ranks_;
  const std::uint64_t seed_;
  std::vector<Stretch> stretches_;
  std::vector<Zone> zones_;
};

}  // namespace dryfly::motif
