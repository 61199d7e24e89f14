// GOAL schedules from a file (core/motif/goal/schedules.hpp), run on the first ranks of the job.
#include <charconv>
#include <cmath>

#include "core/motif/goal/player.hpp"
#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {
namespace {

// LogGOPSim's clock counts nanoseconds, and a calc's number is added to it.
double calc_ps(Parameters& parameters) {
  if (!parameters.has("calc_ns")) return 1000;
  const std::string& words = parameters.text("calc_ns");
  double value = 0;
  const auto [stop, error] = std::from_chars(words.data(), words.data() + words.size(), value);
  if (error != std::errc{} || stop != words.data() + words.size() || !(value > 0) || value > 1e9) {
    throw SpecError("calc_ns = `" + words + "`: accepted is a number above 0, up to 1000000000");
  }
  return value * 1000;
}

// A day at most, so that no sum passes over the end of virtual time (Rank::work).
void check_times(const std::string& file, const goal::Schedules& schedules, double unit_ps) {
  constexpr double most_ps = 86400e12;
  for (std::uint32_t rank = 0; rank < schedules.count(); ++rank) {
    for (std::uint32_t index = schedules.ranks[rank].first; index < schedules.ranks[rank].last; ++index) {
      const goal::Step& step = schedules.steps[index];
      if (step.kind != goal::StepKind::calc || static_cast<double>(step.size) * unit_ps <= most_ps) continue;
      throw SpecError(file + ", line " + std::to_string(step.line) + ", rank " + std::to_string(rank) +
                      ": calc = " + std::to_string(step.size) + ": accepted is what takes a day at most");
    }
  }
}

}  // namespace

Answer predict_goal(Stage& stage, Parameters& parameters) {
  const std::string file = parameters.text("file");
  const double unit_ps = calc_ps(parameters);
  parameters.check_all_used();
  goal::Schedules schedules = goal::read(file);
  if (schedules.count() > stage.ranks()) {
    throw SpecError("nodes * ppn = " + std::to_string(stage.ranks()) + ": accepted is " +
                    std::to_string(schedules.count()) + " and more, the num_ranks of " + file);
  }
  goal::check(file, schedules);
  check_times(file, schedules, unit_ps);
  Answer answer;
  const double steps = static_cast<double>(schedules.steps.size() - 1);
  stage.run(
      [&](Job& job) {
        goal::Player player(job, schedules, unit_ps);
        player.run(file);
        answer.time = Duration{player.end().ps};
      },
      answer);
  answer.figures.emplace_back("schedule_ranks", schedules.count());
  answer.figures.emplace_back("steps", steps);
  return answer;
}

}  // namespace dryfly::motif
