#include "core/motif/workload/hpl/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/motif/job/wires.hpp"
#include "core/motif/workload/hpl/process.hpp"
#include "core/motif/workload/hpl/solve.hpp"
#include "core/spec/fields.hpp"
#include "core/unit/random.hpp"

namespace dryfly::motif::hpl {
namespace {

constexpr std::uint64_t solved_blocks = 64;  // of a sample
constexpr std::uint64_t solve_places = 4;

Task run_stretch(Rank& me, Setting& setting) {
  Process process(me, setting);
  co_await process.factor(me);
  if (!setting.stretch.solves) co_return;
  co_await back_substitute(me, setting, 0, setting.problem.panels() - 1);
  co_await gather_solution(me, setting);
}

}  // namespace

Sampling Sampling::read(Parameters& parameters, const Problem& problem) {
  Sampling sampling{.stretches = parameters.number_or("stretches", 8, 3, 1000),
                    .panels = parameters.number_or("stretch", 4, 1, 100'000),
                    .warm = parameters.number_or("warm", 2, 0, 100'000),
                    .rounds = static_cast<std::uint32_t>(parameters.number_or("rounds", 0, 0, 1 << 20)),
                    .bound = 1e-6 * static_cast<double>(parameters.number_or("bound", 50'000, 1, 1'000'000))};
  const bool wanted_full = parameters.flag("full");
  sampling.is_full = wanted_full || sampling.is_all(problem);
  return sampling;
}

Runner::Runner(Stage& stage, const Problem& problem, Equipment equipment)
    : stage_(stage),
      problem_(problem),
      equipment_(std::move(equipment)),
      cost_(problem, equipment_.rates, equipment_.panel_rates,
            Rate{stage.spec().number(fields::fabric_link_rate_bytes_per_s)}, lumping(0).latency) {}

void Runner::prepare(Job& job, Setting& setting) const {
  setting.phases = {.panel = job.phases().named("PFACT"),
                    .broadcast = job.phases().named("BCAST"),
                    .swap = job.phases().named("SWAP"),
                    .trsm = job.phases().named("TRSM"),
                    .gemm = job.phases().named("GEMM"),
                    .solve = job.phases().named("SOLVE")};
  if (!equipment_.swap_nics.empty()) setting.swap_lane = job.lane(equipment_.swap_nics);
  if (!equipment_.broadcast_nics.empty()) setting.broadcast_lane = job.lane(equipment_.broadcast_nics);
}

// Of a round that is left out: as one of an empty network between groups.
flight::Lumping Runner::lumping(std::uint32_t rounds) const {
  const JobCosts& costs = stage_.costs();
  const Bytes fetched{costs.pushed_max.count + 1};
  const Duration calls = costs.cpu.send_fetched + costs.cpu.receive + costs.cpu.received + costs.cpu.sent;
  const Duration way{Wires::read(stage_.spec()).way_ps(2, 1)};
  return {.rounds = rounds,
          .latency = calls + costs.to_link(fetched) + way + costs.ingress + costs.latencies.completion};
}

Runner::Sample Runner::run(const Stretch& stretch, const flight::Lumping& lumping, Answer& answer) {
  Setting setting(problem_, equipment_.rates, equipment_.panel_rates, equipment_.machinery);
  setting.stretch = stretch;
  setting.lumping = lumping;
  Sample sample;
  stage_.run([&](Rank& me) { return run_stretch(me, setting); }, answer, [&](Job& job) { prepare(job, setting); },
             [&](Job& job) {
               sample.phases = job.phases().means(job.count());
               if (stretch.solves) answer.time = job.end() - Instant{};
             });
  const auto mean_ps = [&](double from_ps, double until_ps) { return (until_ps - from_ps) / stage_.ranks(); };
  const Marks& marks = setting.marks;
  const double taken_ps = mean_ps(marks.begun_sum_ps, marks.ended_sum_ps);
  sample.panel_ps = taken_ps / static_cast<double>(stretch.last + 1 - stretch.counted);
  sample.ratio = taken_ps / cost_.ps(stretch.counted, stretch.last + 1);
  const std::uint64_t middle = stretch.middle();
  if (middle > stretch.counted) {
    sample.drift = mean_ps(marks.middle_sum_ps, marks.ended_sum_ps) / cost_.ps(middle, stretch.last + 1) -
                   mean_ps(marks.begun_sum_ps, marks.middle_sum_ps) / cost_.ps(stretch.counted, middle);
  }
  return sample;
}

Answer Runner::all() {
  Answer answer;
  const Sample sample = run({.last = problem_.panels() - 1, .solves = true}, {}, answer);
  answer.phases = sample.phases;
  return answer;
}

std::vector<Runner::Stratum> Runner::strata(std::uint64_t count) const {
  const double whole = cost_.ps(0, problem_.panels());
  std::vector<Stratum> parts(1);
  double sum = 0;
  for (std::uint64_t panel = 0; panel < problem_.panels(); ++panel) {
    if (sum >= whole * static_cast<double>(parts.size()) / static_cast<double>(count)) {
      parts.back().until = panel;
      parts.push_back({.from = panel});
    }
    const double own = cost_.ps(panel);
    parts.back().cost += own;
    sum += own;
  }
  parts.back().until = problem_.panels();
  return parts;
}

// About the middle of the stratum's cost, within a quarter of it.
Stretch Runner::place(const Stratum& stratum, const Sampling& sampling, std::uint64_t number) const {
  const RandomStream draws(stage_.spec().number(fields::run_seed), 0, Purpose::workload);
  const double wanted = stratum.cost * (0.25 + 0.5 * static_cast<double>(draws.below(number, 1U << 20)) / (1U << 20));
  std::uint64_t begin = stratum.from;
  for (double before = 0; begin + 1 < stratum.until; ++begin) {
    before += cost_.ps(begin);
    if (before > wanted) break;
  }
  const std::uint64_t counted = std::min(sampling.panels, stratum.until - stratum.from);
  begin = std::min(begin, stratum.until - counted);
  return {.first = begin - std::min(begin, sampling.warm), .counted = begin, .last = begin + counted - 1};
}

double Runner::integral_ps(const std::vector<Stratum>& parts) const {
  double sum = 0;
  std::size_t next = 1;
  for (std::uint64_t panel = 0; panel < problem_.panels(); ++panel) {
    const auto at = static_cast<double>(panel);
    while (next + 1 < parts.size() && parts[next].middle() < at) ++next;
    const Stratum& before = parts[next - 1];
    const Stratum& behind = parts[next];
    const double way = (at - before.middle()) / (behind.middle() - before.middle());
    const double ratio = std::lerp(before.sample.ratio, behind.sample.ratio, std::clamp(way, 0.0, 1.0));
    sum += ratio * cost_.ps(panel);
  }
  return sum;
}

// A ratio that is off by s is off the line between its neighbours by s * sqrt(1.5), if these are as well.
double Runner::uncertainty_ps(const std::vector<Stratum>& parts) {
  double off = 0;
  double squares = 0;
  double drift = 0;
  for (std::size_t number = 0; number < parts.size(); ++number) {
    squares += parts[number].cost * parts[number].cost;
    drift += parts[number].cost * parts[number].sample.drift;
    if (number == 0 || number + 1 == parts.size()) continue;
    const Stratum& before = parts[number - 1];
    const Stratum& behind = parts[number + 1];
    const double way = (parts[number].middle() - before.middle()) / (behind.middle() - before.middle());
    const double own = parts[number].sample.ratio - std::lerp(before.sample.ratio, behind.sample.ratio, way);
    off += own * own / 1.5;
  }
  const double variance = off / static_cast<double>(parts.size() - 2);
  return 2 * std::sqrt(variance * squares) + std::abs(drift);
}

void Runner::tell(const std::vector<Stratum>& parts, double whole_ps, Answer& answer) {
  double all_ps = 0;
  for (const Stratum& part : parts) all_ps += part.cost * part.sample.ratio;
  answer.phases = parts.front().sample.phases;
  for (Phase& phase : answer.phases) phase.second = {};
  for (std::size_t number = 0; number < parts.size(); ++number) {
    const Sample& sample = parts[number].sample;
    const std::string name = "stretch " + std::to_string(number) + " ";
    answer.figures.emplace_back(name + "panel", static_cast<double>(parts[number].stretch.counted));
    answer.figures.emplace_back(name + "panel_ps", sample.panel_ps);
    double sum_ps = 0;
    for (const auto& [phase, time] : sample.phases) sum_ps += static_cast<double>(time.ps);
    const double own_ps = parts[number].cost * sample.ratio / all_ps * whole_ps;
    for (std::size_t phase = 0; phase < sample.phases.size(); ++phase) {
      const double of_all = static_cast<double>(sample.phases[phase].second.ps) / sum_ps;
      answer.figures.emplace_back(name + sample.phases[phase].first + "_ps", of_all * sample.panel_ps);
      answer.phases[phase].second.ps += static_cast<std::uint64_t>(of_all * own_ps);
    }
  }
}

std::vector<Runner::Stratum> Runner::sample(const Sampling& sampling, Answer& answer) {
  std::vector<Stratum> parts = strata(sampling.stretches);
  for (std::uint64_t number = 0; number < parts.size(); ++number) {
    parts[number].stretch = place(parts[number], sampling, number);
    parts[number].sample = run(parts[number].stretch, lumping(sampling.rounds), answer);
  }
  return parts;
}

Answer Runner::sampled(Sampling sampling) {
  Answer answer;
  const double solving_ps = solve_ps(answer);
  while (!sampling.is_all(problem_)) {
    const std::vector<Stratum> parts = sample(sampling, answer);
    const double panels_ps = integral_ps(parts);
    const double error_bound = uncertainty_ps(parts) / (panels_ps + solving_ps);
    if (error_bound > sampling.bound) {
      sampling.stretches *= 2;
      continue;
    }
    tell(parts, panels_ps, answer);
    answer.phases.back().second.ps += static_cast<std::uint64_t>(solving_ps);
    answer.time = Duration{static_cast<std::uint64_t>(std::llround(panels_ps + solving_ps))};
    answer.sampled = true;
    answer.error_bound = error_bound;
    return answer;
  }
  return all();
}

double Runner::solve_ps(Answer& answer) {
  const std::uint64_t panels = problem_.panels();
  double sum = 0;
  for (std::uint64_t place = 0; place < solve_places; ++place) {
    const std::uint64_t from = panels * place / solve_places;
    const std::uint64_t until = panels * (place + 1) / solve_places;
    const std::uint64_t blocks = std::min(solved_blocks, until - from);
    if (blocks == 0) continue;
    const std::uint64_t first = from + (until - from - blocks) / 2;
    Setting setting(problem_, equipment_.rates, equipment_.panel_rates, equipment_.machinery);
    stage_.run([&](Rank& me) { return back_substitute(me, setting, first, first + blocks - 1); }, answer,
               [&](Job& job) { prepare(job, setting); },
               [&](Job& job) {
                 const double each_ps = static_cast<double>(job.end().ps) / static_cast<double>(blocks);
                 sum += each_ps * static_cast<double>(until - from);
               });
  }
  return sum;
}

}  // namespace dryfly::motif::hpl
