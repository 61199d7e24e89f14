// MPI_Alltoall of all ranks by pairwise exchange, the algorithm that MPI libraries take for long messages: one of P - 1
// steps is a permutation of the ranks. The whole has P * (P - 1) messages. Where that is affordable all of it is run,
// else a sample of the steps.
//
// A sample is several stretches of consecutive steps (step_sample.hpp). They are dealt to two jobs, which run at once;
// in a job one begins with what the one before has left in the network, and the last one goes on for some steps, as
// ranks have ever fewer others beside them at the end. Without a number of stretches from the user there are more, if
// that is affordable and the bound is more than 5 %.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/motif/collective/collectives.hpp"
#include "core/motif/workload/alltoall/step_sample.hpp"
#include "core/motif/workload/workload.hpp"
#include "core/spec/fields.hpp"

namespace dryfly::motif {
namespace {

// Instants, sums over ranks.
struct Marks {
  std::uint64_t begun_ps = 0;
  std::uint64_t ended_ps = 0;
};

// A stretch, and where its job notes its times.
struct Timed {
  Stretch stretch;
  Marks* marks = nullptr;
};

constexpr std::uint32_t jobs = ShapeOfSample::jobs;
constexpr std::uint32_t run_out = 2;  // steps
constexpr double largest_bound = 0.05;

Task program(Rank& me, Bytes size, const std::vector<Timed>& stretches) {
  const Communicator all = world(me);
  for (const auto& [stretch, marks] : stretches) {
    if (stretch.counted > stretch.first) {
      co_await pairwise_alltoall(me, all, size, stretch.first, stretch.counted - 1);
    }
    marks->begun_ps += me.now().ps;
    co_await pairwise_alltoall(me, all, size, stretch.counted, stretch.counted_last);
    marks->ended_ps += me.now().ps;
    if (stretch.last > stretch.counted_last) {
      co_await pairwise_alltoall(me, all, size, stretch.counted_last + 1, stretch.last);
    }
  }
}

// A step's mean time over ranks, of each stretch.
std::vector<double> step_times(Stage& stage, Bytes size, const std::vector<Stretch>& stretches, Answer& answer) {
  std::vector<Marks> marks(stretches.size());
  std::array<std::vector<Timed>, jobs> dealt;
  for (std::size_t number = 0; number < stretches.size(); ++number) {
    dealt[number % jobs].push_back({.stretch = stretches[number], .marks = &marks[number]});
  }
  std::vector<Job::Program> programs;
  for (std::vector<Timed>& own : dealt) {
    std::uint32_t& last = own.back().stretch.last;
    last = std::min(last + run_out, stage.ranks() - 1);
    programs.push_back([&](Rank& me) { return program(me, size, own); });
  }
  stage.run_side_by_side(programs, answer);
  std::vector<double> times;
  for (std::size_t number = 0; number < stretches.size(); ++number) {
    const auto took_ps = static_cast<double>(marks[number].ended_ps - marks[number].begun_ps);
    times.push_back(took_ps / stage.ranks() / stretches[number].steps_counted());
  }
  return times;
}

// Most ranks have so many in their group.
std::uint32_t ranks_in_group(const Placement& placement) {
  std::vector<std::uint32_t> ranks(placement.topology().group_count());
  for (std::uint32_t rank = 0; rank < placement.ranks(); rank += placement.per_node()) {
    const SwitchId at = placement.topology().switch_of(placement.nic_of(rank));
    ranks[placement.topology().group_of(at).value] += placement.per_node();
  }
  std::ranges::sort(ranks);
  std::uint32_t reached = 0;
  return *std::ranges::find_if(ranks, [&](std::uint32_t own) { return 2 * (reached += own) >= placement.ranks(); });
}

void run_sample(Stage& stage, Bytes size, const ShapeOfSample& shape, Answer& answer) {
  const std::uint32_t steps = stage.ranks() - 1;
  const StepSample sample(shape, steps, ranks_in_group(stage.placement()), stage.spec().number(fields::run_seed));
  const StepSample::Mean mean = sample.mean_of(step_times(stage, size, sample.stretches(), answer));
  answer.time = Duration{static_cast<std::uint64_t>(std::llround(mean.value * steps))};
  answer.sampled = true;
  answer.error_bound = mean.bound;
}

void run_all(Stage& stage, Bytes size, Answer& answer) {
  const std::uint32_t steps = stage.ranks() - 1;
  Marks marks;
  const std::vector<Timed> whole{
      {.stretch = {.first = 1, .counted = 1, .counted_last = steps, .last = steps}, .marks = &marks}};
  stage.run([&](Rank& me) { return program(me, size, whole); }, answer, {});
  answer.time = Duration{(marks.ended_ps - marks.begun_ps) / stage.ranks()};
  answer.sampled = false;
  answer.error_bound = 0;
}

}  // namespace

Answer predict_alltoall(Stage& stage, Parameters& parameters) {
  const Bytes size{parameters.number_or("bytes", 65536, 0, std::uint64_t{1} << 32)};
  const bool full = parameters.flag("full");
  const bool as_many_as_told = parameters.has("stretches");
  ShapeOfSample shape = ShapeOfSample::usual(stage.placement(), size);
  shape.stretches = static_cast<std::uint32_t>(parameters.number_or("stretches", shape.stretches, 2, 1000));
  shape.counted = static_cast<std::uint32_t>(parameters.number_or("stretch", shape.counted, 1, 1'000'000));
  parameters.check_all_used();
  if (stage.ranks() < 2) throw SpecError("ranks = 1: accepted is 2 and more");
  const std::uint64_t messages = std::uint64_t{stage.ranks()} * (stage.ranks() - 1);
  const bool whole = full || (!as_many_as_told && stage.affords(messages, size));
  const auto is_worth_it = [&] {
    const std::uint64_t steps = as_many_as_told ? std::uint64_t{shape.stretches} * shape.counted : shape.steps();
    return !whole && 2 * steps <= stage.ranks();
  };
  Answer answer;
  bool enough = false;
  if (is_worth_it()) stage.refuse_passing_faults();
  for (; !enough && is_worth_it(); shape.stretches *= 2) {
    run_sample(stage, size, shape, answer);
    const bool more_are_affordable = stage.affords(2 * shape.steps() * stage.ranks(), size);
    enough = as_many_as_told || answer.error_bound <= largest_bound || !more_are_affordable;
  }
  if (!enough) run_all(stage, size, answer);
  const double bytes = static_cast<double>(size.count) * stage.ranks() * (stage.ranks() - 1.0);
  answer.figures.emplace_back("bytes_per_s", bytes / (static_cast<double>(answer.time.ps) * 1e-12));
  answer.figures.emplace_back("steps", stage.ranks() - 1.0);
  return answer;
}

}  // namespace dryfly::motif
