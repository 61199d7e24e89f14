// HACC: steps of gravity among particles. Each step has a Poisson solve on a mesh by SWFFT, whose pieces go from boxes
// to pencils and back, and layers of the force for overloaded particles, exchanged with 26 neighbours; short-range
// forces need no messages (docs/model/skeleton-hacc.md).
//
// Parameters, in base units: x, y, z, the grid of ranks, z running fastest; local=AxBxC, points of a rank, and
// particles; overload, points deep; particle_work_ps, of a particle and step; steps; library, which chooses
// collectives; sample: 0, or so many turns of each transform are run, drawn from as many equal parts of all its turns
// and in their order, and of the exchanges of layers some; what that has taken adds up to a step.
//
// Source of the model: SWFFT's redistribution (distribution.c), the grid exchange of HACC's analysis tools
// (GridExchange), the step as the public workload models of HACC have it.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/motif/collective/selection.hpp"
#include "core/motif/workload/estimate.hpp"
#include "core/motif/workload/grid.hpp"
#include "core/motif/workload/pencils.hpp"
#include "core/motif/workload/workload.hpp"
#include "core/spec/fields.hpp"
#include "core/unit/random.hpp"

namespace dryfly::motif {
namespace {

constexpr std::uint64_t bytes_of_complex = 16;
constexpr std::uint64_t bytes_of_force = 4;
constexpr std::size_t axes = 3;
constexpr std::uint32_t directions = 27;  // the middle one leads nowhere
// Redistributions of a transform, along an axis one behind the other.
constexpr std::array<std::uint32_t, axes> lines_of_transform{2, 2, 1};
constexpr std::uint32_t transforms_of_step = 1 + axes;
constexpr std::uint64_t sums_of_step = 5;
constexpr std::uint64_t barriers_of_step = 2;
// Of the 26 directions, by the first axis along which they lead.
constexpr std::array<std::uint32_t, axes> directions_along_axis{18, 6, 2};
// Of fewer turns transforms come out 10 to 40 % too long, for ranks wait for the slowest of few turns where they would
// wait for the slowest sum of many, and the bound does not always say so (docs/model/skeleton-hacc.md#samples).
constexpr std::uint32_t least_sample = 6;
constexpr std::uint32_t most_sample = 1000;
constexpr std::uint32_t layers_along_x = 3;  // of a sample

// Numbers of a sample's draws.
enum Draw : std::uint32_t {
  turn = 0,
  layer = (transforms_of_step + 1) * most_sample,
  quarter = layer + layers_along_x + axes - 1,
};

struct Phases {
  std::uint16_t work, transforms, overload, sums;
};

// A part of a step that a sample has. All wait for the slowest, since a barrier or a sum follows.
struct Part {
  std::function<Task(Rank&)> program;
  bool is_begun_together = true;  // else by each rank as soon as it is through with the part before
  Instant began{};
  Instant ended{};  // by the slowest

  double ps() const { return static_cast<double>((ended - began).ps); }
};

Task in_turn(Rank& me, std::vector<Part>& parts) {
  Instant before{};
  for (Part& part : parts) {
    if (part.is_begun_together) {
      co_await me.gather();
      before = me.now();
    }
    part.began = std::max(part.began, before);
    co_await part.program(me);
    part.ended = std::max(part.ended, me.now());
    before = me.now();
  }
}

struct Hacc {
  Cut boxes;
  std::array<Bytes, axes> pieces{};  // that two ranks of a line exchange
  Bytes layer;
  Duration work;
  std::uint64_t steps = 1;
  std::uint32_t sample = 0;
  Selection selection = Selection::of_library("mpich");
  Phases phases{};

  std::uint32_t at(Triple place, std::size_t axis, std::uint32_t there) const {
    place[axis] = there;
    return boxes.rank_at(place);
  }
  Task line(Rank& me, std::size_t axis) const;
  Task transform(Rank& me, bool forward) const;
  std::uint32_t turns() const;
  std::uint32_t turns_run() const { return std::min(sample, turns()); }
  Task some_turns(Rank& me, bool forward, const std::vector<std::uint32_t>& turns) const;
  Task towards(Rank& me, std::uint32_t direction) const;
  Task exchange(Rank& me) const;
  Task barrier(Rank& me) const { return run_collective(me, world(me), {.what = Collective::barrier}, selection); }
  Task sum(Rank& me) const {
    return run_collective(me, world(me), {.what = Collective::allreduce, .size = Bytes{8}, .element = Bytes{8}},
                          selection);
  }
  Task whole_steps(Rank& me) const;
  Task layer_and_barrier(Rank& me, std::uint32_t direction) const;
  std::vector<std::uint32_t> drawn_turns(const RandomStream& draws, std::uint32_t number, bool forward,
                                         std::uint32_t count) const;
  std::array<std::vector<Part>, 2> drawn_parts(std::uint64_t seed) const;
  void sampled_step(Stage& stage, Answer& answer) const;
};

// A rank's pencil goes through its own box, so that boxes of a line exchange among themselves. All take the line's
// places in the same order, and each exchange is over before the next begins.
Task Hacc::line(Rank& me, std::size_t axis) const {
  const Triple place = boxes.place_of(me.id());
  for (std::uint32_t there = 0; there < boxes.pieces[axis]; ++there) {
    if (there == place[axis]) continue;  // a copy, which is part of the work
    const std::uint32_t peer = at(place, axis, there);
    co_await me.sendrecv(peer, peer, static_cast<std::uint32_t>(axis), pieces[axis]);
  }
}

// Back the other way round.
Task Hacc::transform(Rank& me, bool forward) const {
  for (std::size_t number = 0; number < axes; ++number) {
    const std::size_t axis = forward ? number : axes - 1 - number;
    for (std::uint32_t left = lines_of_transform[axis]; left > 0; --left) co_await line(me, axis);
  }
}

// Place i of a line waits for place 0 to come to it, which takes i turns, and from then on meets one place after the
// other: in each turn the two whose numbers add up to it. So behind the turns of all lines there are those of the last
// places' waiting.
std::uint32_t Hacc::turns() const {
  std::uint32_t turns = 0;
  for (std::size_t axis = 0; axis < axes; ++axis) turns += (lines_of_transform[axis] + 1) * boxes.pieces[axis] - 1;
  return turns;
}

// Of a transform, in their order; whom a rank meets in a turn waits for it in the same one.
Task Hacc::some_turns(Rank& me, bool forward, const std::vector<std::uint32_t>& turns) const {
  const Triple place = boxes.place_of(me.id());
  for (const std::uint32_t turn : turns) {
    std::int64_t own = turn;
    for (std::size_t number = 0; number < axes; ++number) {
      const std::size_t axis = forward ? number : axes - 1 - number;
      own -= place[axis];
      const std::int64_t all = lines_of_transform[axis] * boxes.pieces[axis];
      const auto there = static_cast<std::uint32_t>(own % boxes.pieces[axis]);
      if (own >= 0 && own < all && there != place[axis]) {
        const std::uint32_t peer = at(place, axis, there);
        co_await me.sendrecv(peer, peer, static_cast<std::uint32_t>(axis), pieces[axis]);
      }
      if (own < all) break;
      own -= all;
    }
  }
}

Task Hacc::towards(Rank& me, std::uint32_t direction) const {
  const Triple place = boxes.place_of(me.id());
  Triple to{};
  Triple from{};
  for (std::size_t axis = 0; axis < axes; ++axis, direction /= 3) {
    const std::uint32_t side = boxes.pieces[axis];
    to[axis] = (place[axis] + direction % 3 + side - 1) % side;
    from[axis] = (place[axis] + side + 1 - direction % 3) % side;
  }
  if (to == place) co_return;
  co_await me.sendrecv(boxes.rank_at(to), boxes.rank_at(from), static_cast<std::uint32_t>(axes), layer);
}

// One direction after the other, with a barrier behind each.
Task Hacc::exchange(Rank& me) const {
  for (std::uint32_t direction = 0; direction < directions; ++direction) {
    if (direction == directions / 2) continue;
    co_await layer_and_barrier(me, direction);
  }
}

Task Hacc::layer_and_barrier(Rank& me, std::uint32_t direction) const {
  co_await towards(me, direction);
  co_await barrier(me);
}

Task Hacc::whole_steps(Rank& me) const {
  for (std::uint64_t step = 0; step < steps; ++step) {
    me.enter(phases.work);
    co_await me.compute(work);
    me.enter(phases.sums);
    co_await barrier(me);
    co_await sum(me);
    me.enter(phases.transforms);
    co_await transform(me, true);
    me.enter(phases.sums);
    co_await sum(me);
    for (std::size_t component = 0; component < axes; ++component) {
      me.enter(phases.transforms);
      co_await transform(me, false);
      me.enter(phases.overload);
      co_await exchange(me);
    }
    me.enter(phases.sums);
    for (std::uint64_t left = sums_of_step - 2; left > 0; --left) co_await sum(me);
    co_await barrier(me);
  }
  me.enter(0);
}

// One from each of as many equal parts of all turns. The transforms of a step have theirs from a quarter of the part
// each, in turn from part to part, so that none has more of the first quarters than of the last ones; forward begins
// with what the others end with.
std::vector<std::uint32_t> Hacc::drawn_turns(const RandomStream& draws, std::uint32_t number, bool forward,
                                             std::uint32_t count) const {
  constexpr std::uint64_t within = 1U << 20;  // a quarter, which may be less than a turn
  const std::uint32_t first = draws.below(Draw::quarter, transforms_of_step);
  std::vector<std::uint32_t> drawn;
  for (std::uint32_t part = 0; part < count; ++part) {
    const std::uint32_t begin = part * turns() / count;
    const std::uint32_t end = (part + 1) * turns() / count;
    const std::uint32_t own = Draw::turn + number * most_sample + part;
    std::uint64_t place = draws.below(own, within * transforms_of_step);
    if (number < transforms_of_step) {
      const std::uint32_t backwards = forward ? count - 1 - part : part;
      const std::uint32_t quarter = (first + number + backwards) % transforms_of_step;
      place = place % within + (forward ? transforms_of_step - 1 - quarter : quarter) * within;
    }
    drawn.push_back(begin + static_cast<std::uint32_t>(place * (end - begin) / (within * transforms_of_step)));
  }
  return drawn;
}

Task computing(Rank& me, Duration some) { co_await me.compute(some); }

struct Work {
  double mean_ps = 0;
  double slowest_ps = 0;  // more than the mean, if the slowest stays so
};

// Detours of seconds add up to the same on all cores, and would take long to draw.
Work sampled_work(Stage& stage, Answer& answer, Duration work) {
  const Duration some{std::min(work.ps, std::uint64_t{100'000'000'000})};
  if (some.ps == 0) return {};
  double sum = 0;
  double most = 0;
  stage.run([&](Rank& me) { return computing(me, some); }, answer,
            [&](Job& job) {
              for (std::uint32_t rank = 0; rank < job.count(); ++rank) {
                const auto took = static_cast<double>(job.rank(rank).now().ps);
                sum += took;
                most = std::max(most, took);
              }
            });
  const double times = static_cast<double>(work.ps) / static_cast<double>(some.ps);
  const double mean = sum / stage.ranks();
  return {.mean_ps = mean * times, .slowest_ps = (most - mean) * times};
}

// By the first axis along which they lead: edges and corners go as far as the face of that axis.
std::vector<std::uint32_t> directions_along(std::size_t axis) {
  std::vector<std::uint32_t> along;
  for (std::uint32_t direction = 0; direction < directions; ++direction) {
    const std::array<std::uint32_t, axes> steps{direction % 3, direction / 3 % 3, direction / 9};
    const auto first = std::ranges::find_if(steps, [](std::uint32_t step) { return step != 1; });
    if (first - steps.begin() == static_cast<std::ptrdiff_t>(axis)) along.push_back(direction);
  }
  return along;
}

// A step's parts, in two jobs side by side: the turns drawn of each of its transforms, one forward and the others back,
// and one back with half as many turns; layers, three of the 18 directions along x and one along each other
// axis; and what all meet in.
std::array<std::vector<Part>, 2> Hacc::drawn_parts(std::uint64_t seed) const {
  const RandomStream draws(seed, 0, Purpose::workload);
  std::array<std::vector<Part>, 2> jobs;
  const auto add_transform = [&](std::size_t job, std::uint32_t number, bool forward, std::uint32_t count) {
    jobs[job].push_back({.program = [this, forward, drawn = drawn_turns(draws, number, forward, count)](Rank& me) {
      return some_turns(me, forward, drawn);
    }});
  };
  for (std::uint32_t number = 0; number < transforms_of_step; ++number) {
    add_transform(number % 2, number, number == 0, turns_run());
  }
  add_transform(0, transforms_of_step, false, turns_run() / 2);
  const auto add_layer = [&](std::uint32_t draw, std::span<const std::uint32_t> from) {
    const std::uint32_t direction = from[draws.below(Draw::layer + draw, static_cast<std::uint32_t>(from.size()))];
    jobs[1].push_back({.program = [this, direction](Rank& me) { return layer_and_barrier(me, direction); },
                       .is_begun_together = draw == 0});
  };
  const std::vector<std::uint32_t> along_x = directions_along(0);
  constexpr std::size_t third = directions_along_axis[0] / layers_along_x;
  for (std::uint32_t draw = 0; draw < layers_along_x; ++draw) {
    add_layer(draw, std::span(along_x).subspan(draw * third, third));
  }
  add_layer(layers_along_x, directions_along(1));
  add_layer(layers_along_x + 1, directions_along(2));
  jobs[0].push_back({.program = [this](Rank& me) { return sum(me); }});
  jobs[0].push_back({.program = [this](Rank& me) { return barrier(me); }});
  return jobs;
}

void Hacc::sampled_step(Stage& stage, Answer& answer) const {
  std::array<std::vector<Part>, 2> jobs = drawn_parts(stage.spec().number(fields::run_seed));
  const std::array<Job::Program, 2> programs{[&](Rank& me) { return in_turn(me, jobs[0]); },
                                             [&](Rank& me) { return in_turn(me, jobs[1]); }};
  stage.run_side_by_side(programs, answer);
  const auto& [first, second] = jobs;  // in the order of drawn_parts()
  const Estimate turn =
      Estimate::mean_of(std::array{first[0].ps(), first[1].ps(), second[0].ps(), second[1].ps()}) * (1.0 / turns_run());
  const Estimate transforms = turn * turns() * transforms_of_step;
  // With fewer turns the slowest ranks are waited for more often, seen against all; so what is not run has as much of
  // that as halves differ by, at most.
  const double back_ps = (first[1].ps() + second[0].ps() + second[1].ps()) / 3;
  const double coarse_ps = std::abs(first[2].ps() / (turns_run() / 2) - back_ps / turns_run());
  const Estimate along_x = Estimate::mean_of(std::array{second[2].ps(), second[3].ps(), second[4].ps()});
  const Estimate overload =
      (along_x * directions_along_axis[0] + along_x.spread_like_this(second[5].ps()) * directions_along_axis[1] +
       along_x.spread_like_this(second[6].ps()) * directions_along_axis[2]) *
      axes;
  const Work works = sampled_work(stage, answer, work);
  const auto add = [&](const char* phase, double ps) {
    answer.phases.emplace_back(phase, Duration{static_cast<std::uint64_t>(ps)});
    answer.time = answer.time + answer.phases.back().second;
  };
  add("work", works.mean_ps);
  add("transforms", transforms.value());
  add("overload", overload.value());
  add("sums", first[3].ps() * sums_of_step + first[4].ps() * barriers_of_step);
  const double bound_ps = (transforms + overload).bound() + coarse_ps * turns() * transforms_of_step + works.slowest_ps;
  answer.sampled = true;
  answer.error_bound = answer.time.ps > 0 ? bound_ps / static_cast<double>(answer.time.ps) : 0;
}

Hacc hacc_of(Stage& stage, Parameters& parameters) {
  Hacc hacc;
  hacc.boxes.pieces = Grid::read(parameters, stage.ranks()).sides;
  const std::array<std::uint64_t, axes> sides = parameters.three("local", 1, 2048);
  const std::uint64_t all = sides[0] * sides[1] * sides[2];
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const std::uint64_t across = all / sides[axis];
    if (across % hacc.boxes.pieces[axis] != 0) {
      throw SpecError("local = " + parameters.text("local") + " has " + std::to_string(across) +
                      " points across axis " + std::to_string(axis) + ": accepted is a multiple of " +
                      std::to_string(hacc.boxes.pieces[axis]) + ", the ranks along it, which have a pencil each");
    }
    hacc.pieces[axis] = Bytes{all / hacc.boxes.pieces[axis] * bytes_of_complex};
  }
  // One buffer for all directions, as large as the largest layer could be, is sent as a whole.
  const std::uint64_t overload = parameters.number("overload", 0, 1024);
  const std::uint64_t longest = std::ranges::max(sides);
  hacc.layer = Bytes{longest * longest * (overload + 1) * bytes_of_force};
  hacc.work = Duration{parameters.number("particle_work_ps", 0, 1'000'000'000)} * all;
  hacc.steps = parameters.number("steps", 1, 1'000'000);
  hacc.sample = static_cast<std::uint32_t>(parameters.number_or("sample", 0, 0, most_sample));
  if (hacc.sample > 0 && hacc.sample < least_sample) {
    throw SpecError("sample = " + parameters.text("sample") + ": accepted is 0, for all of it, or " +
                    std::to_string(least_sample) + " to " + std::to_string(most_sample) + " turns of a transform");
  }
  hacc.selection = Selection::of_library(parameters.text_or("library", "mpich"));
  return hacc;
}

}  // namespace

Answer predict_hacc(Stage& stage, Parameters& parameters) {
  Hacc hacc = hacc_of(stage, parameters);
  parameters.check_all_used();
  Answer answer;
  if (hacc.sample > 0) {
    stage.refuse_passing_faults("sample=0");
    hacc.sampled_step(stage, answer);
  } else {
    stage.run([&](Rank& me) { return hacc.whole_steps(me); }, answer,
              [&](Job& job) {
                auto& phases = job.phases();
                hacc.phases = {.work = phases.named("work"),
                               .transforms = phases.named("transforms"),
                               .overload = phases.named("overload"),
                               .sums = phases.named("sums")};
              },
              [&](Job& job) { answer.count_step_of(job, hacc.steps); });
  }
  answer.add_sides("grid", hacc.boxes.pieces);
  answer.chosen = hacc.selection.chosen();
  return answer;
}

}  // namespace dryfly::motif
