// HACC: steps of gravity among particles. Each step has a Poisson solve on a mesh by SWFFT, whose pieces go from boxes
// to pencils and back, and layers of the force for overloaded particles, exchanged with 26 neighbours; short-range
// forces need no messages (docs/model/skeleton-hacc.md).
//
// Parameters, in base units: x, y, z, the grid of ranks, z running fastest; local=AxBxC, points of a rank, and
// particles; overload, points deep; particle_work_ps, of a particle and step; steps; library, which chooses
// collectives; sample: 0, or each part of a step is run once, with all ranks beginning it together, and of a transform
// so many turns in each of five places; what that has taken adds up to a step.
//
// Source of the model: SWFFT's redistribution (distribution.c), the grid exchange of HACC's analysis tools
// (GridExchange), the step as the public workload models of HACC have it.
#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "core/motif/collective/selection.hpp"
#include "core/motif/workload/grid.hpp"
#include "core/motif/workload/pencils.hpp"
#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {
namespace {

constexpr std::uint64_t bytes_of_complex = 16;
constexpr std::uint64_t bytes_of_force = 4;
constexpr std::size_t axes = 3;
constexpr std::uint32_t directions = 27;  // the middle one leads nowhere
// Redistributions of a transform, along an axis one behind the other.
constexpr std::array<std::uint32_t, axes> lines_of_transform{2, 2, 1};
constexpr std::uint64_t sums_of_step = 5;
constexpr std::uint64_t barriers_of_step = 2;

struct Phases {
  std::uint16_t work, transforms, overload, sums;
};

// Turns of exchanges along a line. Place i waits for place 0 to come to it, which takes i turns, and from then on meets
// one place after the other.
struct Window {
  std::uint32_t first;
  std::uint32_t count;
};

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
  Task window(Rank& me, const Window& turns, double& ps, double& done) const;
  Task towards(Rank& me, std::uint32_t direction) const;
  Task exchange(Rank& me) const;
  Task barrier(Rank& me) const { return run_collective(me, world(me), {.what = Collective::barrier}, selection); }
  Task sum(Rank& me) const {
    return run_collective(me, world(me), {.what = Collective::allreduce, .size = Bytes{8}, .element = Bytes{8}},
                          selection);
  }
  Task computing(Rank& me, Duration some) const { co_await me.compute(some); }
  Task whole_steps(Rank& me) const;
  Duration sampled_transform(Stage& stage, Answer& answer) const;
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

Task Hacc::window(Rank& me, const Window& turns, double& ps, double& done) const {
  const Triple place = boxes.place_of(me.id());
  std::uint32_t last = 0;
  for (std::uint32_t turn = 0; turn < turns.count; ++turn) {
    std::int64_t own = turns.first + turn;
    for (std::size_t axis = 0; axis < axes; ++axis) {
      own -= place[axis];
      const std::int64_t all = lines_of_transform[axis] * boxes.pieces[axis];
      const auto there = static_cast<std::uint32_t>(own % boxes.pieces[axis]);
      if (own >= 0 && own < all && there != place[axis]) {
        const std::uint32_t peer = at(place, axis, there);
        co_await me.sendrecv(peer, peer, static_cast<std::uint32_t>(axis), pieces[axis]);
        last = turn + 1;
      }
      if (own < all) break;
      own -= all;
    }
  }
  if (last == 0) co_return;
  ps += static_cast<double>(me.now().ps);
  done += last;
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
    co_await towards(me, direction);
    co_await barrier(me);
  }
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

Duration Hacc::sampled_transform(Stage& stage, Answer& answer) const {
  constexpr std::uint32_t places = 5;
  std::uint32_t turns = 0;
  for (std::size_t axis = 0; axis < axes; ++axis) turns += (lines_of_transform[axis] + 1) * boxes.pieces[axis];
  const std::uint32_t count = std::min(sample, turns / places);
  double took_ps = 0;
  for (std::uint32_t number = 0; number < places; ++number) {
    const std::uint32_t middle = (2 * number + 1) * turns / (2 * places);
    const Window some{.first = middle - std::min(middle, count / 2), .count = count};
    double ps = 0;
    double done = 0;
    stage.run([&](Rank& me) { return window(me, some, ps, done); }, answer, [](Job&) {});
    if (done > 0) took_ps += ps / done * turns / places;
  }
  return Duration{static_cast<std::uint64_t>(took_ps)};
}

// Its parts, each run once with all ranks beginning it together.
void Hacc::sampled_step(Stage& stage, Answer& answer) const {
  // All ranks wait for the slowest, since a barrier or a sum follows.
  const auto taken = [&](const Job::Program& part) {
    Duration took{};
    stage.run(part, answer, [&](Job& job) { took = Duration{job.end().ps}; });
    return took;
  };
  // Detours of seconds add up to the same on all cores, and would take long to draw.
  const Duration some{std::min(work.ps, std::uint64_t{100'000'000'000})};
  double some_ps = 0;
  stage.run([&](Rank& me) { return computing(me, some); }, answer,
            [&](Job& job) {
              for (std::uint32_t rank = 0; rank < job.count(); ++rank)
                some_ps += static_cast<double>(job.rank(rank).now().ps);
            });
  const double stretch = some.ps > 0 ? some_ps / stage.ranks() / static_cast<double>(some.ps) : 0;
  const Duration works{static_cast<std::uint64_t>(stretch * static_cast<double>(work.ps))};
  const Duration transforms = sampled_transform(stage, answer) * (1 + axes);
  const Duration barrier_took = taken([&](Rank& me) { return barrier(me); });
  Duration layers = barrier_took * (directions - 1);
  // Edges and corners go as far as the face of their first axis.
  constexpr std::array<std::uint32_t, axes> faces{14, 16, 22};
  for (std::size_t axis = 0, count = 18; axis < axes; ++axis, count /= 3) {
    layers = layers + taken([&](Rank& me) { return towards(me, faces[axis]); }) * count;
  }
  const Duration sums = taken([&](Rank& me) { return sum(me); }) * sums_of_step + barrier_took * barriers_of_step;
  answer.phases = {{"work", works}, {"transforms", transforms}, {"overload", layers * axes}, {"sums", sums}};
  for (const auto& [name, took] : answer.phases) answer.time = answer.time + took;
  answer.sampled = true;
  answer.error_bound = std::numeric_limits<double>::quiet_NaN();
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
  hacc.sample = static_cast<std::uint32_t>(parameters.number_or("sample", 0, 0, 1000));
  hacc.selection = Selection::of_library(parameters.text_or("library", "mpich"));
  return hacc;
}

}  // namespace

Answer predict_hacc(Stage& stage, Parameters& parameters) {
  Hacc hacc = hacc_of(stage, parameters);
  parameters.check_all_used();
  Answer answer;
  if (hacc.sample > 0) {
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
  return answer;
}

}  // namespace dryfly::motif
