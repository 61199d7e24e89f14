// MPI_Alltoall of all ranks by pairwise exchange, the algorithm that MPI libraries take for long messages: one of P - 1
// steps is a permutation of the ranks. The whole has P * (P - 1) messages. Where that is affordable all of it is run,
// else a sample of the steps.
//
// A sample is several stretches of consecutive steps, one in each of as many parts of all steps, at a place drawn in
// its part, so that each distance between partners stands for its like. Parts at both ends are shorter, for the
// distances within a node, a switch and a group lie there, which cost less than others. Stretches are run one after the
// other in one job, so that one begins with what the one before has left in the network. Not counted are the steps
// before the first, in which that builds up, the first steps of each stretch, in which ranks come to be as far apart as
// these distances make them (eight steps on all nodes of Aurora, packed, where a step takes up to a fifth longer then),
// and those behind the last, in which ranks have ever fewer others beside them.
//
// Ranks may drift further apart, and then steps take longer. That needs dozens of steps in order, as the same nodes
// meet for as many steps as they have ranks, and a stretch that begins elsewhere undoes it. So two stretches go on for
// longer, and by how much the end of these takes more than what counts of them, the rise, says what the sample does not
// see. The answer is halfway between the one and the other.
//
// The bound of the error is twice the standard error of the mean of the stretches' times, from what neighbours differ
// by, since each stands for its own part, and never below a floor; and the largest rise of half an end, up or down, for
// times that go up and down for so long are as bad as those that only rise. Without a number of stretches from the user
// there are more if they would help the bound, which they do not with the rise, and are affordable.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/motif/collective/collectives.hpp"
#include "core/motif/workload/workload.hpp"
#include "core/spec/fields.hpp"
#include "core/unit/random.hpp"

namespace dryfly::motif {
namespace {

struct Stretch {
  std::uint32_t first = 1;
  std::uint32_t counted = 1;  // the first step that counts
  std::uint32_t last = 1;     // that does
  std::uint32_t later = 0;    // steps behind it
};

// Instants, sums over ranks.
struct Marks {
  std::uint64_t begun_ps = 0;
  std::uint64_t ended_ps = 0;
  std::array<std::uint64_t, 3> end_ps{};  // of one that goes on: where its end begins, its middle, and where it is over
};

// A step's mean time over ranks.
struct Times {
  double counted_ps = 0;
  std::array<double, 2> end_ps{};  // in the halves of the end
};

// Of a sample, in steps.
constexpr std::uint32_t lead_in = 12;
constexpr std::uint32_t steps_before = 8;
constexpr std::uint32_t run_out = 4;
constexpr std::uint32_t later_steps = 22;
constexpr std::uint32_t half_end = 8;
constexpr std::uint32_t usual_stretches = 24;
constexpr double smallest_bound = 0.02;  // of so many stretches; of fewer it is more
constexpr double largest_bound = 0.05;

Task program(Rank& me, Bytes size, const std::vector<Stretch>& stretches, std::vector<Marks>& marks) {
  const Communicator all = world(me);
  for (std::size_t number = 0; number < stretches.size(); ++number) {
    const Stretch& stretch = stretches[number];
    if (stretch.counted > stretch.first) {
      co_await pairwise_alltoall(me, all, size, stretch.first, stretch.counted - 1);
    }
    marks[number].begun_ps += me.now().ps;
    co_await pairwise_alltoall(me, all, size, stretch.counted, stretch.last);
    marks[number].ended_ps += me.now().ps;
    if (stretch.later == 0) continue;
    std::uint32_t last = stretch.last + stretch.later - 2 * half_end;
    co_await pairwise_alltoall(me, all, size, stretch.last + 1, last);
    for (std::uint64_t& sum : marks[number].end_ps) {
      sum += me.now().ps;
      if (last == stretch.last + stretch.later) break;
      co_await pairwise_alltoall(me, all, size, last + 1, last + half_end);
      last += half_end;
    }
  }
}

std::vector<Times> step_times(Stage& stage, Bytes size, const std::vector<Stretch>& stretches, Answer& answer) {
  std::vector<Marks> marks(stretches.size());
  stage.run([&](Rank& me) { return program(me, size, stretches, marks); }, answer, {});
  const auto step_ps = [&](std::uint64_t from_ps, std::uint64_t to_ps, std::uint32_t steps) {
    return static_cast<double>(to_ps - from_ps) / stage.ranks() / steps;
  };
  std::vector<Times> times;
  for (std::size_t number = 0; number < stretches.size(); ++number) {
    const Marks& sums = marks[number];
    const std::uint32_t counted = stretches[number].last - stretches[number].counted + 1;
    times.push_back({.counted_ps = step_ps(sums.begun_ps, sums.ended_ps, counted),
                     .end_ps = {step_ps(sums.end_ps[0], sums.end_ps[1], half_end),
                                step_ps(sums.end_ps[1], sums.end_ps[2], half_end)}});
  }
  return times;
}

struct Sample {
  std::uint32_t stretches = 0;
  std::uint32_t before = 0;   // steps of a stretch that do not count
  std::uint32_t counted = 0;  // and that do

  std::uint64_t steps() const {
    return lead_in + std::uint64_t{stretches} * (before + counted) + 2 * later_steps + run_out;
  }
  bool goes_on(std::uint32_t number) const { return number == stretches / 3 || number == 2 * stretches / 3; }
};

// Where the parts begin, and where the last one has ended. Shares are eighths of the longest parts'.
std::vector<std::uint32_t> parts_of(const Sample& sample, std::uint32_t steps) {
  std::vector<std::uint64_t> shares(sample.stretches, 8);
  const bool has_room = steps / (8 * std::uint64_t{sample.stretches}) >= sample.before + sample.counted;
  if (sample.stretches >= 8 && has_room) {
    for (std::size_t number = 0; number < 3; ++number) {
      shares[number] = shares[sample.stretches - 1 - number] = std::uint64_t{1} << number;
    }
  }
  const std::uint64_t all = std::accumulate(shares.begin(), shares.end(), std::uint64_t{0});
  std::vector<std::uint32_t> parts{1};
  std::uint64_t before = 0;
  for (const std::uint64_t share : shares) {
    before += share;
    parts.push_back(1 + static_cast<std::uint32_t>(steps * before / all));
  }
  return parts;
}

// One that goes on may do so in the next part, but not behind the last step.
std::vector<Stretch> drawn(const Sample& sample, const std::vector<std::uint32_t>& parts, std::uint64_t seed) {
  const RandomStream draws(seed, 0, Purpose::workload);
  std::vector<Stretch> stretches;
  for (std::uint32_t number = 0; number < sample.stretches; ++number) {
    const std::uint64_t room = parts[number + 1] - parts[number] - sample.before - sample.counted;
    const std::uint32_t later = sample.goes_on(number) ? later_steps : 0;
    const auto first = std::min(static_cast<std::uint32_t>(parts[number] + draws.within(number, room + 1)),
                                parts.back() - sample.before - sample.counted - later);
    const std::uint32_t counted = first + sample.before;
    stretches.push_back({.first = first, .counted = counted, .last = counted + sample.counted - 1, .later = later});
  }
  return stretches;
}

// A value of each part, and which share of all steps the part is.
struct Value {
  double value = 0;
  double share = 0;
};

double mean_of(const std::vector<Value>& values) {
  double mean = 0;
  for (const Value& each : values) mean += each.value * each.share;
  return mean;
}

// Of that, for two values and more: what neighbours differ by is how far a value may lie from its part's mean, and by
// how much the parts differ themselves does not count.
double standard_error(const std::vector<Value>& values) {
  double squares = 0;
  for (std::size_t number = 1; number < values.size(); ++number) {
    const double apart = values[number].value - values[number - 1].value;
    squares += apart * apart * values[number].share * values[number - 1].share;
  }
  const auto count = static_cast<double>(values.size());
  return std::sqrt(squares / 2 * count / (count - 1));
}

// What the bound of the error is the sum of.
struct Bound {
  double of_mean = 0;
  double rise = 0;
};

Bound run_sample(Stage& stage, Bytes size, const Sample& sample, Answer& answer) {
  const std::uint32_t steps = stage.ranks() - 1;
  const std::vector<std::uint32_t> parts = parts_of(sample, steps);
  const std::vector<Stretch> inner = drawn(sample, parts, stage.spec().number(fields::run_seed));
  const std::uint32_t middle = steps / 2;
  std::vector<Stretch> stretches{{.first = middle, .counted = middle, .last = middle + lead_in - 1}};
  stretches.insert(stretches.end(), inner.begin(), inner.end());
  stretches.push_back({.first = middle, .counted = middle, .last = middle + run_out - 1});
  const std::vector<Times> times = step_times(stage, size, stretches, answer);
  std::vector<Value> values;
  double rise = 0;
  double largest_rise = 0;
  for (std::uint32_t number = 0; number < sample.stretches; ++number) {
    const Times& found = times[number + 1];
    const double share = static_cast<double>(parts[number + 1] - parts[number]) / steps;
    values.push_back({.value = found.counted_ps, .share = share});
    if (!sample.goes_on(number) || found.counted_ps == 0) continue;
    for (const double end_ps : found.end_ps) {
      const double rises = end_ps / found.counted_ps - 1;
      rise += rises / 4;
      largest_rise = std::max(largest_rise, std::abs(rises));
    }
  }
  const double mean = mean_of(values);
  answer.time = Duration{static_cast<std::uint64_t>(std::llround(mean * (1 + rise / 2) * steps))};
  answer.sampled = true;
  const double floor = smallest_bound * std::max(1.0, double{usual_stretches} / sample.stretches);
  return {.of_mean = std::max(mean > 0 ? 2 * standard_error(values) / mean : 0, floor), .rise = largest_rise};
}

void run_all(Stage& stage, Bytes size, Answer& answer) {
  const std::uint32_t steps = stage.ranks() - 1;
  const std::vector<Stretch> whole{{.first = 1, .counted = 1, .last = steps}};
  const double step_ps = step_times(stage, size, whole, answer).front().counted_ps;
  answer.time = Duration{static_cast<std::uint64_t>(std::llround(step_ps * steps))};
  answer.sampled = false;
  answer.error_bound = 0;
}

}  // namespace

Answer predict_alltoall(Stage& stage, Parameters& parameters) {
  const Bytes size{parameters.number_or("bytes", 65536, 0, std::uint64_t{1} << 32)};
  const bool full = parameters.flag("full");
  const bool as_many_as_told = parameters.has("stretches");
  Sample sample{.stretches = static_cast<std::uint32_t>(parameters.number_or("stretches", usual_stretches, 2, 1000)),
                .before = steps_before,
                .counted = static_cast<std::uint32_t>(parameters.number_or("stretch", 2, 1, 1'000'000))};
  parameters.check_all_used();
  if (stage.ranks() < 2) throw SpecError("ranks = 1: accepted is 2 and more");
  const std::uint64_t messages = std::uint64_t{stage.ranks()} * (stage.ranks() - 1);
  const bool whole = full || (!as_many_as_told && stage.affords(messages, size));
  const auto is_worth_it = [&] { return !whole && 2 * sample.steps() < stage.ranks(); };
  Answer answer;
  bool enough = false;
  double rise = 0;
  if (is_worth_it()) stage.refuse_passing_faults();
  for (; !enough && is_worth_it(); sample.stretches *= 2) {
    const Bound found = run_sample(stage, size, sample, answer);
    rise = std::max(rise, found.rise);
    answer.error_bound = found.of_mean + rise;
    const bool more_help = smallest_bound + rise <= largest_bound;
    const bool more_are_affordable = stage.affords(2 * sample.steps() * stage.ranks(), size);
    enough = as_many_as_told || answer.error_bound <= largest_bound || !more_help || !more_are_affordable;
  }
  if (!enough) run_all(stage, size, answer);
  const double bytes = static_cast<double>(size.count) * stage.ranks() * (stage.ranks() - 1.0);
  answer.figures.emplace_back("bytes_per_s", bytes / (static_cast<double>(answer.time.ps) * 1e-12));
  answer.figures.emplace_back("steps", stage.ranks() - 1.0);
  return answer;
}

}  // namespace dryfly::motif
