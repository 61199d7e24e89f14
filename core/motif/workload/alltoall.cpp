// MPI_Alltoall of all ranks by pairwise exchange, the algorithm that MPI libraries take for long messages: one of P - 1
// steps is a permutation of the ranks. The whole has P * (P - 1) messages; by default a sample of the steps is run.
//
// A sample is several stretches of consecutive steps, one in each of equally many equal parts of all steps, at a place
// drawn in its part, so that each distance between partners stands for its like. The first steps of a stretch begin in
// step and are not counted: how far ranks have drifted apart builds up in them. The bound of the error is twice the
// standard error of the mean of the stretches' times.
#include <cmath>

#include "core/motif/collective/collectives.hpp"
#include "core/motif/workload/sample_mean.hpp"
#include "core/motif/workload/workload.hpp"
#include "core/spec/fields.hpp"
#include "core/unit/random.hpp"

namespace dryfly::motif {
namespace {

struct Stretch {
  std::uint32_t first = 1;
  std::uint32_t counted = 1;  // the first step that counts
  std::uint32_t last = 1;
};

struct Marks {
  std::uint64_t begun_sum_ps = 0;
  std::uint64_t ended_sum_ps = 0;
};

Task program(Rank& me, Bytes size, Stretch stretch, Marks& marks) {
  const Communicator all = world(me);
  if (stretch.counted > stretch.first) {
    co_await pairwise_alltoall(me, all, size, stretch.first, stretch.counted - 1);
  }
  marks.begun_sum_ps += me.now().ps;
  co_await pairwise_alltoall(me, all, size, stretch.counted, stretch.last);
  marks.ended_sum_ps += me.now().ps;
}

// The mean time of a step, over ranks.
double step_ps(Stage& stage, Bytes size, const Stretch& stretch, Answer& answer) {
  Marks marks;
  stage.run([&](Rank& me) { return program(me, size, stretch, marks); }, answer, {});
  const double steps = stretch.last - stretch.counted + 1;
  return static_cast<double>(marks.ended_sum_ps - marks.begun_sum_ps) / stage.ranks() / steps;
}

void sample(Stage& stage, Bytes size, Parameters& parameters, Answer& answer) {
  const std::uint32_t steps = stage.ranks() - 1;
  const auto stretches = static_cast<std::uint32_t>(parameters.number_or("stretches", 8, 2, 1000));
  const auto counted = static_cast<std::uint32_t>(parameters.number_or("stretch", 12, 1, 1'000'000));
  const std::uint32_t before = counted / 2;
  const RandomStream draws(stage.spec().number(fields::run_seed), 0, Purpose::workload);
  SampleMean times;
  for (std::uint32_t number = 0; number < stretches; ++number) {
    const std::uint64_t from = 1 + std::uint64_t{steps} * number / stretches;
    const std::uint64_t until = 1 + std::uint64_t{steps} * (number + 1) / stretches;
    const std::uint64_t room = until - from - before - counted;
    const auto first = static_cast<std::uint32_t>(from + draws.within(number, room + 1));
    const Stretch stretch{.first = first, .counted = first + before, .last = first + before + counted - 1};
    times.add(step_ps(stage, size, stretch, answer));
  }
  answer.time = Duration{static_cast<std::uint64_t>(std::llround(times.mean() * steps))};
  answer.sampled = true;
  answer.error_bound = 2 * times.standard_error() / times.mean();
}

}  // namespace

Answer predict_alltoall(Stage& stage, Parameters& parameters) {
  const Bytes size{parameters.number_or("bytes", 65536, 0, std::uint64_t{1} << 32)};
  const bool full = parameters.flag("full");
  const std::uint64_t most_steps =
      parameters.number_or("stretches", 8, 2, 1000) * parameters.number_or("stretch", 12, 1, 1'000'000) * 3 / 2;
  if (stage.ranks() < 2) throw SpecError("ranks = 1: accepted is 2 and more");
  Answer answer;
  if (full || stage.ranks() - 1 <= 2 * most_steps) {
    parameters.check_all_used();
    answer.time = Duration{static_cast<std::uint64_t>(
        std::llround(step_ps(stage, size, {1, 1, stage.ranks() - 1}, answer) * (stage.ranks() - 1)))};
  } else {
    stage.refuse_passing_faults();
    sample(stage, size, parameters, answer);
    parameters.check_all_used();
  }
  const double bytes = static_cast<double>(size.count) * stage.ranks() * (stage.ranks() - 1.0);
  answer.figures.emplace_back("bytes_per_s", bytes / (static_cast<double>(answer.time.ps) * 1e-12));
  answer.figures.emplace_back("steps", stage.ranks() - 1.0);
  return answer;
}

}  // namespace dryfly::motif
