// A recorded schedule from a file (core/motif/schedule/schedule.hpp), run on the first ranks of the job.
//
//   file=PATH
//   library=mpich|openmpi   who chooses the algorithms of its collectives; without it each has always the same
#include "core/motif/schedule/schedule.hpp"

#include <optional>

#include "core/motif/collective/selection.hpp"
#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {
namespace {

double instructions_of(const Schedule& schedule) {
  double sum = 0;
  for (const std::uint32_t list : schedule.list_of) {
    sum += static_cast<double>(schedule.lists[list].last - schedule.lists[list].first);
  }
  return sum;
}

}  // namespace

Answer predict_schedule(Stage& stage, Parameters& parameters) {
  const std::string file = parameters.text("file");
  std::optional<Selection> library;
  if (parameters.has("library")) library = Selection::of_library(parameters.text("library"));
  parameters.check_all_used();
  const Schedule schedule = read_schedule(file);
  check_schedule(schedule);
  if (schedule.ranks() > stage.ranks()) {
    throw SpecError("nodes * ppn = " + std::to_string(stage.ranks()) + ": accepted is " +
                    std::to_string(schedule.ranks()) + " and more, the ranks of " + schedule.program);
  }
  Answer answer;
  stage.run(
      [&](Job& job) {
        play_all(job, schedule, library ? &*library : nullptr);
        answer.time = Duration{job.end().ps};
        answer.phases = job.phases().means(schedule.ranks());
      },
      answer);
  answer.figures.emplace_back("schedule_ranks", schedule.ranks());
  answer.figures.emplace_back("instructions", instructions_of(schedule));
  answer.figures.emplace_back("lists", static_cast<double>(schedule.lists.size()));
  if (library) answer.chosen = library->chosen();
  return answer;
}

}  // namespace dryfly::motif
