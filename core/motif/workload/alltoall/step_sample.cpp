#include "core/motif/workload/alltoall/step_sample.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/motif/workload/estimate.hpp"
#include "core/unit/random.hpp"

namespace dryfly::motif {
namespace {

// At 24 stretches; of fewer it is more, as standard errors are.
constexpr double smallest_bound = 0.025;
constexpr double many_stretches = 24;

// What is left of longer messages lasts into the next stretch.
constexpr Bytes longest_that_goes_on{std::uint64_t{256} << 10};

// Draws of a sample, beside one for each stretch.
enum Draw : std::uint32_t { side = 1'000'000, remainder = 1'000'001 };

// Of the fit: one, the wave over a group's ranks, the rise to both ends.
constexpr std::size_t terms = 3;
using Terms = std::array<double, terms>;

constexpr std::uint32_t least_for_fit = 2 * terms;  // stretches
constexpr std::uint32_t points_of_wave = 64;        // of which a mean is made
constexpr std::uint32_t least_wave = 8;             // ranks of a group, or it is none

// `share` of the messages go round behind the last rank, to the first ones again. Either kind loads cables of its own,
// by as much as it has of all messages and the more, the fewer groups its groups send to.
Terms terms_at(double step, std::uint32_t steps, std::uint32_t group_ranks) {
  const double ranks = steps + 1.0;
  const auto wave = [&](double distance) { return std::cos(2 * std::numbers::pi * distance / group_ranks); };
  const double share = step / ranks;
  const double waves = (1 - share) * (1 - share) * wave(step) + share * share * wave(ranks - step);
  const double from_middle = 2 * share - 1;
  return {1, waves, from_middle * from_middle};
}

// Solves the symmetric positive definite system by elimination.
Terms solved(std::array<Terms, terms> rows, Terms right) {
  for (std::size_t pivot = 0; pivot < terms; ++pivot) {
    for (std::size_t row = pivot + 1; row < terms; ++row) {
      const double factor = rows[row][pivot] / rows[pivot][pivot];
      for (std::size_t column = pivot; column < terms; ++column) rows[row][column] -= factor * rows[pivot][column];
      right[row] -= factor * right[pivot];
    }
  }
  for (std::size_t row = terms; row-- > 0;) {
    for (std::size_t column = row + 1; column < terms; ++column) right[row] -= rows[row][column] * right[column];
    right[row] /= rows[row][row];
  }
  return right;
}

double product(const Terms& first, const Terms& second) {
  return std::inner_product(first.begin(), first.end(), second.begin(), 0.0);
}

}  // namespace

ShapeOfSample ShapeOfSample::usual(const Placement& placement, Bytes size) {
  const std::uint32_t ranks_of_node = placement.per_node();
  const std::uint32_t before = std::min(3 * ranks_of_node, 12 + ranks_of_node / 4);
  const bool goes_on = placement.is_in_order() && size <= longest_that_goes_on;
  return {.stretches = 10, .before = before, .counted = 2, .spared = goes_on ? before / 2 : 0};
}

StepSample::StepSample(const ShapeOfSample& shape, std::uint32_t steps, std::uint32_t group_ranks, std::uint64_t seed)
    : steps_(steps), group_ranks_(group_ranks), seed_(seed) {
  const std::uint32_t farthest = std::min(group_ranks, (steps + 1) / 2);
  const std::uint32_t near_steps = std::min(2 * farthest, steps);
  // Two stretches say how much they differ, so a zone of its own needs two, or is the smaller one.
  const bool is_far_worth_it = shape.stretches >= 4 && steps - near_steps >= shape.steps();
  if (!is_far_worth_it) {
    add_near_zone(shape, (steps + 1) / 2, shape.stretches);
    return;
  }
  const double near_share = static_cast<double>(near_steps) / steps;
  const auto near_stretches = static_cast<std::uint32_t>(std::lround(near_share * shape.stretches));
  const std::uint32_t near = std::clamp(near_stretches, std::uint32_t{1}, shape.stretches - 2);
  add_near_zone(shape, farthest, near);
  add_far_zone(shape, farthest + 1, steps - farthest, shape.stretches - near);
}

void StepSample::add(const ShapeOfSample& shape, std::uint32_t counted) {
  const std::uint32_t last = counted + shape.counted - 1;
  const std::uint32_t before = stretches_.size() < shape.jobs ? shape.before : shape.before - shape.spared;
  stretches_.push_back({.first = counted > before ? counted - before : 1,
                        .counted = counted,
                        .counted_last = last,
                        .last = std::min(last + ShapeOfSample::behind, steps_)});
}

// Ahead and behind in turn.
void StepSample::add_near_zone(const ShapeOfSample& shape, std::uint32_t farthest, std::uint32_t count) {
  const RandomStream draws(seed_, 0, Purpose::workload);
  const std::uint32_t from_side = draws.below(side, 2);
  for (std::uint32_t number = 0; number < count; ++number) {
    const auto begin = static_cast<std::uint32_t>(std::uint64_t{farthest} * number / count);
    const auto end = static_cast<std::uint32_t>(std::uint64_t{farthest} * (number + 1) / count);
    const std::uint32_t room = std::max(end - begin, shape.counted) - shape.counted + 1;
    const std::uint32_t distance = 1 + begin + draws.below(number, room);
    const bool is_behind = (number + from_side) % 2 == 1;
    add(shape, is_behind ? steps_ + 2 - distance - shape.counted : distance);
  }
  zones_.push_back({.share = std::min(1.0, 2.0 * farthest / steps_), .first = 0, .count = count});
}

void StepSample::add_far_zone(const ShapeOfSample& shape, std::uint32_t first, std::uint32_t last,
                              std::uint32_t count) {
  constexpr double golden = std::numbers::phi - 1;
  const RandomStream draws(seed_, 0, Purpose::workload);
  const auto offset = static_cast<double>(draws.below(remainder, 1U << 20U)) / (1U << 20U);
  const std::uint32_t steps = last - first + 1;
  const bool has_all_remainders = steps / count >= group_ranks_ + shape.counted;
  zones_.push_back({.share = 1 - zones_.front().share,
                    .first = static_cast<std::uint32_t>(stretches_.size()),
                    .count = count,
                    .has_wave = group_ranks_ >= least_wave,
                    .first_step = first,
                    .last_step = last});
  for (std::uint32_t number = 0; number < count; ++number) {
    const std::uint32_t begin = first + static_cast<std::uint32_t>(std::uint64_t{steps} * number / count);
    const std::uint32_t end = first + static_cast<std::uint32_t>(std::uint64_t{steps} * (number + 1) / count);
    const auto draw = static_cast<std::uint32_t>(stretches_.size());
    std::uint32_t counted = begin;
    if (has_all_remainders) {
      const auto left = static_cast<std::uint32_t>(std::fmod(offset + golden * number, 1.0) * group_ranks_);
      counted += (left + group_ranks_ - begin % group_ranks_) % group_ranks_;
      counted += group_ranks_ * draws.below(draw, (end - counted - shape.counted) / group_ranks_ + 1);
    } else {
      counted += draws.below(draw, end - begin - shape.counted + 1);
    }
    add(shape, counted);
  }
}

StepSample::Estimate StepSample::by_fit(const Zone& zone, const std::vector<double>& times) const {
  std::vector<Terms> lines;
  for (std::uint32_t number = zone.first; number < zone.first + zone.count; ++number) {
    lines.push_back(
        terms_at((stretches_[number].counted + stretches_[number].counted_last) / 2.0, steps_, group_ranks_));
  }
  Terms means{};
  const std::uint32_t stride = std::max(1U, group_ranks_ / points_of_wave);
  double looked_at = 0;
  for (std::uint32_t step = zone.first_step; step <= zone.last_step; step += stride, ++looked_at) {
    const Terms here = terms_at(step, steps_, group_ranks_);
    for (std::size_t term = 0; term < terms; ++term) means[term] += here[term];
  }
  for (double& mean : means) mean /= looked_at;
  std::array<Terms, terms> sums{};
  Terms right{};
  for (std::uint32_t place = 0; place < zone.count; ++place) {
    for (std::size_t row = 0; row < terms; ++row) {
      right[row] += lines[place][row] * times[zone.first + place];
      for (std::size_t column = 0; column < terms; ++column)
        sums[row][column] += lines[place][row] * lines[place][column];
    }
  }
  const Terms fit = solved(sums, right);
  double squares = 0;
  for (std::uint32_t place = 0; place < zone.count; ++place) {
    const double apart = times[zone.first + place] - product(fit, lines[place]);
    squares += apart * apart;
  }
  const double freedom = zone.count - double{terms};
  return {.mean = product(fit, means),
          .variance = squares / freedom * product(means, solved(sums, means)),
          .freedom = freedom};
}

StepSample::Estimate StepSample::of_zone(const Zone& zone, const std::vector<double>& times) const {
  if (zone.has_wave && zone.count >= least_for_fit) return by_fit(zone, times);
  const auto begin = times.begin() + zone.first;
  const auto end = begin + zone.count;
  const double mean = std::accumulate(begin, end, 0.0) / zone.count;
  if (zone.count == 1) return {.mean = mean};
  double squares = 0;
  for (auto time = begin + 1; time != end; ++time) squares += (*time - *(time - 1)) * (*time - *(time - 1));
  const double pairs = zone.count - 1.0;
  return {.mean = mean, .variance = squares / 2 / pairs / zone.count, .freedom = pairs};
}

StepSample::Mean StepSample::mean_of(const std::vector<double>& times) const {
  double mean = 0;
  double variance = 0;
  double freedom = 0;
  for (const Zone& zone : zones_) {
    const Estimate found = of_zone(zone, times);
    mean += zone.share * found.mean;
    variance += zone.share * zone.share * found.variance;
    freedom += zone.count > 1 ? found.freedom : 0;
  }
  if (mean <= 0) return {};
  const Zone& near = zones_.front();
  if (near.count == 1 && zones_.size() > 1) {
    // A lone stretch may differ from what it stands for by as much as the zones do from each other.
    const double apart = near.share * (times[near.first] - mean);
    variance += apart * apart;
  }
  const double floor =
      smallest_bound * std::sqrt(std::max(1.0, many_stretches / static_cast<double>(stretches_.size())));
  return {.value = mean, .bound = std::max(floor, students_t(freedom) * std::sqrt(variance) / mean)};
}

}  // namespace dryfly::motif
