// AMR-Wind: a time step of an incompressible flow over flat ground, without refinement: Godunov's method, a projection
// of the velocities on faces, implicit diffusion of temperature and velocity, a projection on nodes; all four solves
// are AMReX's multigrid (docs/model/skeleton-amrwind.md).
//
// Parameters, in base units: x, y, z, the grid of ranks; local=AxBxC, cells of a rank; gather, cells along a side of
// the boxes of coarse levels; sweeps, of a smoothing on nodes; advection_words, moved for a cell by Godunov's method;
// mac, temperature, velocity, nodal, V-cycles of each solve; mac_bottom, nodal_bottom, half iterations on the coarsest
// level in each of these; steps; library, which chooses how to add up; sample: 0, or each exchange and sum is run so
// many times in a row, and a step is made of what these have taken.
//
// Source of the model: the program itself with AMReX and AMReX-Hydro: what is exchanged and added up, and what the
// loops read and write.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/motif/collective/selection.hpp"
#include "core/motif/workload/amrwind/step.hpp"
#include "core/motif/workload/grid.hpp"
#include "core/motif/workload/work_rates.hpp"
#include "core/motif/workload/workload.hpp"
#include "core/spec/fields.hpp"

namespace dryfly::motif {
namespace {

using amrwind::Part;
using amrwind::Phase;
using amrwind::Step;
using amrwind::Traffic;

struct Mean {
  double ps = 0;
  std::uint64_t ranks = 0;
  Duration slowest{};

  void add(Duration took) {
    ps += static_cast<double>(took.ps);
    ++ranks;
    slowest = std::max(slowest, took);
  }
  Duration of_each(std::uint64_t times) const {
    return Duration{ranks == 0 ? 0 : static_cast<std::uint64_t>(ps / static_cast<double>(ranks * times))};
  }
};

// Of a part that is run so many times in a row.
struct Took {
  Mean all;
  Mean first;  // of them
};

struct AmrWind {
  const Step& step;
  const WorkRates& rates;
  Selection selection;
  std::uint64_t steps;
  std::uint64_t sample;
  std::vector<std::unique_ptr<Traffic>> traffic;  // of each part that exchanges
  std::array<std::uint16_t, amrwind::phase_names.size()> phases{};

  Duration work_of(const Part& part, std::uint32_t rank) const;
  Task exchange(Rank& me, std::uint32_t part, std::uint32_t tag) const;
  Task run_part(Rank& me, std::uint32_t part, std::uint32_t tag) const;
  Task add_up(Rank& me, const Part& part) const;
  Task whole_steps(Rank& me) const;
  Task computing(Rank& me, Duration some) const { co_await me.compute(some); }
  void prepare(std::uint32_t part) {
    if (step.parts()[part].kind == Part::Kind::exchange) traffic[part] = step.traffic(step.parts()[part]);
  }
  bool takes_part(std::uint32_t rank, std::uint32_t part) const;
  Task parts_in_turn(Rank& me, std::vector<Took>& took);
  double bound_ps(const std::vector<Took>& took, const std::vector<std::uint64_t>& times) const;
  double stretch_of_work(Stage& stage, Answer& answer, Duration work) const;
  void sampled_step(Stage& stage, Answer& answer);
};

// Kernels of one part share what it moves; each has its call.
Duration AmrWind::work_of(const Part& part, std::uint32_t rank) const {
  const std::uint64_t cells = step.levels().cells_of(part.what, rank);
  return cells == 0 ? Duration{} : rates.memory(cells * part.size / part.kernels) * part.kernels;
}

// All receives first, then all sends.
Task AmrWind::exchange(Rank& me, std::uint32_t part, std::uint32_t tag) const {
  const Traffic& all = *traffic[part];
  const std::uint64_t of_point = step.parts()[part].size;
  for (const Traffic::Message& message : all.received_by(me.id())) me.irecv(message.peer, tag);
  for (const Traffic::Message& message : all.sent_by(me.id())) {
    me.isend(message.peer, tag, Bytes{message.points * of_point});
  }
  co_await me.wait_all();
}

Task AmrWind::add_up(Rank& me, const Part& part) const {
  const CollectiveCall call{.what = Collective::allreduce, .size = Bytes{part.size}, .element = Bytes{8}};
  if (part.kind == Part::Kind::sum) {
    co_await run_collective(me, world(me), call, selection);
  } else if (step.levels().at_bottom(me.id())) {
    co_await run_collective(me, Communicator(step.levels().bottom_ranks(), 1), call, selection);
  }
}

Task AmrWind::run_part(Rank& me, std::uint32_t part, std::uint32_t tag) const {
  const Part& what = step.parts()[part];
  switch (what.kind) {
    case Part::Kind::exchange:
      co_await exchange(me, part, tag);
      break;
    case Part::Kind::sum:
    case Part::Kind::bottom_sum:
      co_await add_up(me, what);
      break;
    case Part::Kind::compute:
      co_await me.compute(work_of(what, me.id()));
      break;
  }
}

Task AmrWind::whole_steps(Rank& me) const {
  std::uint32_t tag = 0;
  for (std::uint64_t number = 0; number < steps; ++number) {
    for (const std::uint32_t part : step.order()) {
      me.enter(phases[static_cast<std::size_t>(step.parts()[part].phase)]);
      co_await run_part(me, part, tag++ % (1U << 24));
    }
  }
  me.enter(0);
}

// All ranks begin a part together. What it takes is the mean of those that have something to do in it.
Task AmrWind::parts_in_turn(Rank& me, std::vector<Took>& took) {
  for (std::uint32_t part = 0; part < step.parts().size(); ++part) {
    if (step.parts()[part].kind == Part::Kind::compute) continue;
    co_await me.gather();
    if (traffic[part] == nullptr) prepare(part);
    const Instant begin = me.now();
    co_await run_part(me, part, 0);
    const Duration first = me.now() - begin;
    for (std::uint32_t turn = 1; turn < sample; ++turn) co_await run_part(me, part, turn);
    if (!takes_part(me.id(), part)) continue;
    took[part].first.add(first);
    took[part].all.add(me.now() - begin);
  }
}

bool AmrWind::takes_part(std::uint32_t rank, std::uint32_t part) const {
  const Part& what = step.parts()[part];
  if (what.kind == Part::Kind::bottom_sum) return step.levels().at_bottom(rank);
  if (what.kind != Part::Kind::exchange) return true;
  return !traffic[part]->received_by(rank).empty() || !traffic[part]->sent_by(rank).empty();
}

// Detours of seconds add up to the same on all cores, and would take long to draw.
double AmrWind::stretch_of_work(Stage& stage, Answer& answer, Duration work) const {
  const Duration some{std::min(work.ps, std::uint64_t{100'000'000'000})};
  if (some.ps == 0) return 1;
  double ps = 0;
  stage.run([&](Rank& me) { return computing(me, some); }, answer,
            [&](Job& job) {
              for (std::uint32_t rank = 0; rank < job.count(); ++rank)
                ps += static_cast<double>(job.rank(rank).now().ps);
            });
  return ps / stage.ranks() / static_cast<double>(some.ps);
}

// A step takes no less than parts for which nobody is late, and no more than parts behind which all wait for the
// slowest; the answer is farther from one of these than from the other.
double AmrWind::bound_ps(const std::vector<Took>& took, const std::vector<std::uint64_t>& times) const {
  double least_ps = 0;
  double said_ps = 0;
  double most_ps = 0;
  for (std::size_t part = 0; part < took.size(); ++part) {
    const auto add = [&](double& sum, Duration of_part) { sum += static_cast<double>((of_part * times[part]).ps); };
    add(least_ps, took[part].first.of_each(1));
    add(said_ps, took[part].all.of_each(sample));
    add(most_ps, took[part].first.slowest);
  }
  return std::max(most_ps - said_ps, said_ps - least_ps);
}

void AmrWind::sampled_step(Stage& stage, Answer& answer) {
  std::vector<std::uint64_t> times(step.parts().size(), 0);
  for (const std::uint32_t part : step.order()) ++times[part];
  std::vector<Took> parts(times.size());
  stage.run([&](Rank& me) { return parts_in_turn(me, parts); }, answer, [](Job&) {});
  std::array<Duration, amrwind::phase_names.size()> took{};
  std::array<Duration, amrwind::phase_names.size()> worked{};
  for (std::uint32_t part = 0; part < times.size(); ++part) {
    const Part& what = step.parts()[part];
    const auto phase = static_cast<std::size_t>(what.phase);
    if (what.kind != Part::Kind::compute) {
      took[phase] = took[phase] + parts[part].all.of_each(sample) * times[part];
      continue;
    }
    // The others wait for those that have anything of a coarse level.
    Duration longest{};
    for (std::uint32_t rank = 0; rank < stage.ranks(); ++rank) longest = std::max(longest, work_of(what, rank));
    worked[phase] = worked[phase] + longest * times[part];
  }
  const double stretch = stretch_of_work(stage, answer, worked[static_cast<std::size_t>(Phase::work)]);
  for (std::size_t phase = 0; phase < took.size(); ++phase) {
    const double work_ps = static_cast<double>(worked[phase].ps) * stretch;
    took[phase] = took[phase] + Duration{static_cast<std::uint64_t>(work_ps)};
    answer.phases.emplace_back(amrwind::phase_names[phase], took[phase]);
    answer.time = answer.time + took[phase];
  }
  const Duration bottom = took[static_cast<std::size_t>(Phase::bottom)];
  answer.figures.emplace_back("above_bottom_ps", static_cast<double>(answer.time.ps - bottom.ps));
  answer.sampled = true;
  answer.error_bound = answer.time.ps > 0 ? bound_ps(parts, times) / static_cast<double>(answer.time.ps) : 0;
}

amrwind::Solve solve_of(Parameters& parameters, const std::string& name) {
  return {.cycles = parameters.number(name, 1, 1000), .halves = parameters.number_or(name + "_bottom", 0, 1, 10'000)};
}

amrwind::Problem problem_of(const Stage& stage, Parameters& parameters) {
  amrwind::Problem problem;
  problem.sides = Grid::read(parameters, stage.ranks()).sides;
  const std::array<std::uint64_t, 3> cells = parameters.three("local", 4, 2048);
  for (std::size_t axis = 0; axis < cells.size(); ++axis) {
    if (cells[axis] % 2 != 0) {
      throw SpecError("local = " + parameters.text("local") + ": accepted are even numbers");
    }
    problem.cells[axis] = static_cast<std::uint32_t>(cells[axis]);
  }
  problem.gather = static_cast<std::uint32_t>(parameters.number("gather", 2, 1024));
  problem.sweeps = static_cast<std::uint32_t>(parameters.number("sweeps", 1, 100));
  problem.advection_words = parameters.number("advection_words", 1, 100'000);
  problem.mac = solve_of(parameters, "mac");
  problem.temperature = solve_of(parameters, "temperature");
  problem.velocity = solve_of(parameters, "velocity");
  problem.nodal = solve_of(parameters, "nodal");
  return problem;
}

}  // namespace

Answer predict_amrwind(Stage& stage, Parameters& parameters) {
  const amrwind::Problem problem = problem_of(stage, parameters);
  const std::uint64_t steps = parameters.number_or("steps", 1, 1, 1'000'000);
  const std::uint64_t sample = parameters.number_or("sample", 0, 0, 1000);
  const Selection selection = Selection::of_library(parameters.text_or("library", "mpich"));
  parameters.check_all_used();
  const Step step(problem);
  // A build for GPUs computes all levels there, however few their cells are.
  const WorkRates rates(stage.spec(), stage.placement().per_node(), {},
                        stage.spec().has(fields::compute_gpu_fp64_per_s) ? Where::gpu : Where::cpu);
  AmrWind program{.step = step,
                  .rates = rates,
                  .selection = selection,
                  .steps = steps,
                  .sample = sample,
                  .traffic = std::vector<std::unique_ptr<Traffic>>(step.parts().size())};
  Answer answer;
  if (sample > 0) {
    stage.refuse_passing_faults("sample=0");
    program.sampled_step(stage, answer);
  } else {
    for (std::uint32_t part = 0; part < step.parts().size(); ++part) program.prepare(part);
    stage.run([&](Rank& me) { return program.whole_steps(me); }, answer,
              [&](Job& job) {
                for (std::size_t phase = 0; phase < program.phases.size(); ++phase)
                  program.phases[phase] = job.phases().named(amrwind::phase_names[phase]);
              },
              [&](Job& job) { answer.count_step_of(job, steps); });
  }
  answer.figures.emplace_back("levels", step.levels().count());
  answer.figures.emplace_back("first_gathered_level", step.levels().first_gathered());
  answer.figures.emplace_back("bottom_ranks", static_cast<double>(step.levels().bottom_ranks().size()));
  answer.add_sides("grid", problem.sides);
  answer.chosen = selection.chosen();
  return answer;
}

}  // namespace dryfly::motif
