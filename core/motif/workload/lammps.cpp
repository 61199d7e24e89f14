// Parameters, in base units: x, y, z, the grid of ranks; bins=AxBxC, of the ranks of a node in it; atoms, of a
// rank; box=AxBxC, of the whole, in pm; density, atoms in a cube of 10 nm; cutoff, skin and spacing, in pm;
// mesh=AxBxC; order of the stencil; differentiate=ik|ad; steps; rebuild, steps from one neighbour list to
// the next; atom_work_ps, of an atom and step; sample: 0, or one step is run, twice at once, with so many turns at two
// places of each exchange of the transforms, and the rest is made of what that has taken.
//
// What a step of LAMMPS sends with `atom_style full`, `kspace_style pppm`, `fix shake` and `fix npt`, as its benchmark
// of rhodopsin has it (docs/model/skeleton-lammps.md).
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "core/motif/collective/selection.hpp"
#include "core/motif/workload/estimate.hpp"
#include "core/motif/workload/grid.hpp"
#include "core/motif/workload/pencils.hpp"
#include "core/motif/workload/workload.hpp"
#include "core/spec/fields.hpp"
#include "core/unit/random.hpp"

namespace dryfly::motif {
namespace {

// Of atom_style full.
constexpr double bytes_of_position = 24;  // and of a force
constexpr double bytes_of_ghost = 64;
constexpr double bytes_of_migrant = 560;
// How far atoms that leave a box have come on average until the next rebuild, in pm.
constexpr double drift_pm = 2.5;
constexpr std::uint64_t sums_of_output = 12;  // behind the last step

// A pair of ranks that swap along an axis, each sending what the other lacks.
struct Swap {
  std::size_t axis;
  bool on;  // sent to the next rank, else to the one before
  double amount;
  double back;  // where it is sent the other way
};

// Of the points of a rank along an axis, and of those around them that its atoms reach.
struct Shelf {
  std::uint64_t own;
  std::uint64_t below;
  std::uint64_t above;
};

// Parts of a step, for which its time is told.
enum Phase : std::uint8_t { work, ghosts, mesh, sums };
constexpr std::array<const char*, 4> phase_names{"work", "ghosts", "mesh", "sums"};

// A step with some turns of its exchanges only, and what it has taken. Sums over ranks.
struct SampledStep {
  std::vector<Remap::Sample> remaps;
  bool is_mesh_only = false;
  bool has_rebuild = false;  // of neighbour lists, behind the step
  std::array<std::uint64_t, phase_names.size()> phases_ps{};
  std::uint64_t sum_ps = 0;      // one where nobody is late
  std::uint64_t rebuild_ps = 0;  // with all ranks beginning together
  Duration slowest_work{};
  Instant ended{};
};

struct Problem {
  Cut bricks;
  std::vector<Swap> ghosts;  // atoms
  std::array<std::vector<Shelf>, 3> shelves;
  Triple rounds{1, 1, 1};  // of swaps along an axis, of points
  std::array<double, 3> migrants{};
  std::vector<Remap> remaps;       // of a step, in order
  std::vector<std::size_t> kinds;  // of each the first that is like it
  std::uint64_t fields = 1;        // that come back from the mesh
  std::uint64_t steps = 1;
  std::uint64_t rebuild = 1;
  std::uint32_t sample = 0;
  Duration work;
  Selection selection = Selection::of_library("mpich");
  std::array<std::uint16_t, phase_names.size()> phases{};  // of the job

  // Of all steps, those that ask whether any atom has gone far, and those behind which lists are made anew.
  bool asks(std::uint64_t step) const { return since_rebuild(step) >= std::min(steps_without_asking, rebuild); }
  bool rebuilds(std::uint64_t step) const { return since_rebuild(step) == rebuild; }

 private:
  static constexpr std::uint64_t steps_without_asking = 5;  // and that one
  std::uint64_t since_rebuild(std::uint64_t step) const { return (step - 1) % rebuild + 1; }
};

// What a rank swaps of its points: along x, then along y with what has come along x.
std::vector<Swap> planes_of(const Problem& problem, const Triple& place) {
  std::vector<Swap> swaps;
  std::array<std::uint64_t, 3> extents{};
  for (std::size_t axis = 0; axis < 3; ++axis) extents[axis] = problem.shelves[axis][place[axis]].own;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::vector<Shelf>& all = problem.shelves[axis];
    const std::size_t side = all.size();
    const Shelf& mine = all[place[axis]];
    const Shelf& before = all[(place[axis] + side - 1) % side];
    const Shelf& behind = all[(place[axis] + 1) % side];
    const std::uint64_t across = extents[(axis + 1) % 3] * extents[(axis + 2) % 3];
    for (std::uint64_t round = 0; side > 1 && round < problem.rounds[axis]; ++round) {
      const auto layer = [&](std::uint64_t depth, const Shelf& owner) {
        const std::uint64_t done = round * owner.own;
        return static_cast<double>(depth > done ? std::min(depth - done, owner.own) * across : 0);
      };
      // The rank before lacks the lowest of these, and this one the highest of its.
      swaps.push_back(
          {.axis = axis, .on = false, .amount = layer(before.above, mine), .back = layer(mine.above, behind)});
      swaps.push_back(
          {.axis = axis, .on = true, .amount = layer(behind.below, mine), .back = layer(mine.below, before)});
    }
    extents[axis] += mine.below + mine.above;
  }
  return swaps;
}

class Atoms {
 public:
  Atoms(Rank& me, const Problem& problem)
      : me_(me), problem_(problem), planes_(planes_of(problem, problem.bricks.place_of(me.id()))) {}

  Task whole_steps(Rank& me) {
    for (std::uint64_t step = 1; step <= problem_.steps; ++step) {
      if (problem_.asks(step)) co_await sums(me, Bytes{4}, 1);
      enter(Phase::ghosts);
      if (problem_.rebuilds(step)) {
        co_await rebuild(me);
      } else {
        co_await swaps(me, problem_.ghosts, bytes_of_position, false);
      }
      enter(Phase::work);
      co_await me.compute(problem_.work);
      enter(Phase::mesh);
      co_await swaps(me, planes_, 8, true);
      for (const Remap& remap : problem_.remaps) co_await remap.run(me, next_tag());
      co_await swaps(me, planes_, 8.0 * static_cast<double>(problem_.fields), false);
      co_await sums(me, Bytes{48}, 1);  // the virial of the mesh
      enter(Phase::ghosts);
      co_await swaps(me, problem_.ghosts, bytes_of_position, true);
      co_await swaps(me, problem_.ghosts, bytes_of_position, false);  // of fix shake
      co_await sums(me, Bytes{8}, 1);
      co_await sums(me, Bytes{48}, 4);  // temperatures and pressures of fix npt
    }
    // After the last step energies and pressures are written.
    co_await sums(me, Bytes{8}, sums_of_output - 2);
    co_await sums(me, Bytes{16}, 2);
    me.enter(0);
  }

  Task sampled_step(Rank& me, SampledStep& step) {
    Instant before = me.now();
    const auto passed = [&](Phase phase) {
      const Duration took = me.now() - before;
      before = me.now();
      step.phases_ps[phase] += took.ps;
      return took;
    };
    if (!step.is_mesh_only) co_await swaps(me, problem_.ghosts, bytes_of_position, false);
    passed(Phase::ghosts);
    co_await me.compute(problem_.work);
    step.slowest_work = std::max(step.slowest_work, passed(Phase::work));
    co_await swaps(me, planes_, 8, true);
    for (Remap::Sample& remap : step.remaps) co_await remap.run(me, next_tag());
    co_await swaps(me, planes_, 8.0 * static_cast<double>(problem_.fields), false);
    passed(Phase::mesh);
    if (step.is_mesh_only) co_return;
    co_await sums(me, Bytes{48}, 1);
    co_await sums(me, Bytes{8}, 1);
    passed(Phase::sums);
    co_await sums(me, Bytes{48}, 1);
    step.sum_ps += passed(Phase::sums).ps;
    step.ended = std::max(step.ended, me.now());
    if (!step.has_rebuild) co_return;
    co_await me.gather();
    before = me.now();
    co_await rebuild(me);
    step.rebuild_ps += (me.now() - before).ps;
  }

 private:
  static constexpr std::uint32_t tags = 1U << 24;

  void enter(Phase phase) { me_.enter(problem_.phases[phase]); }
  std::uint32_t next_tag() { return tag_++ % tags; }
  std::uint32_t peer(const Swap& swap, bool on) const {
    Triple place = problem_.bricks.place_of(me_.id());
    const std::uint32_t side = problem_.bricks.pieces[swap.axis];
    place[swap.axis] = (place[swap.axis] + (on ? 1 : side - 1)) % side;
    return problem_.bricks.rank_at(place);
  }
  static Bytes whole(double amount, double bytes_each) {
    return Bytes{static_cast<std::uint64_t>(std::llround(amount)) * static_cast<std::uint64_t>(bytes_each)};
  }

  // Back: from ghosts to their owners, in the reverse order.
  Task swaps(Rank& me, const std::vector<Swap>& all, double bytes_each, bool back) {
    for (std::size_t number = 0; number < all.size(); ++number) {
      const Swap& swap = all[back ? all.size() - 1 - number : number];
      const bool on = swap.on != back;
      const std::uint32_t tag = next_tag();
      const Pending received = me.irecv(peer(swap, !on), tag);
      co_await me.send(peer(swap, on), tag, whole(back ? swap.back : swap.amount, bytes_each));
      co_await me.wait(received);
    }
  }

  Task rebuild(Rank& me) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::uint32_t side = problem_.bricks.pieces[axis];
      if (side == 1) continue;
      // Where the ranks on both sides are one, it gets all at once.
      const double leaving = problem_.migrants[axis] * (side == 2 ? 2 : 1);
      for (int sending = 0; sending < (side == 2 ? 1 : 2); ++sending) {
        const Swap swap{.axis = axis, .on = sending == 1, .amount = leaving, .back = leaving};
        co_await counted(me, swap, bytes_of_migrant);
      }
    }
    for (const Swap& swap : problem_.ghosts) co_await counted(me, swap, bytes_of_ghost);
    co_await sums(me, Bytes{4}, 4);  // bonds and angles that have got lost
  }

  // How many first.
  Task counted(Rank& me, Swap swap, double bytes_each) {
    const std::uint32_t tag = next_tag();
    co_await me.sendrecv(peer(swap, swap.on), peer(swap, !swap.on), tag, Bytes{4});
    const std::uint32_t second = next_tag();
    const Pending received = me.irecv(peer(swap, !swap.on), second);
    co_await me.send(peer(swap, swap.on), second, whole(swap.amount, bytes_each));
    co_await me.wait(received);
  }

  Task sums(Rank& me, Bytes size, std::uint64_t count) {
    enter(Phase::sums);
    const CollectiveCall call{.what = Collective::allreduce, .size = size, .element = Bytes{8}};
    const CollectiveCall of_int{.what = Collective::allreduce, .size = size, .element = Bytes{4}};
    for (std::uint64_t turn = 0; turn < count; ++turn) {
      co_await run_collective(me, world(me), size.count % 8 == 0 ? call : of_int, problem_.selection);
    }
  }

  Rank& me_;
  const Problem& problem_;
  const std::vector<Swap> planes_;
  std::uint32_t tag_ = 0;
};

Task whole_steps(Rank& me, const Problem& problem) {
  Atoms atoms(me, problem);
  co_await atoms.whole_steps(me);
}

Task sampled_step(Rank& me, const Problem& problem, SampledStep& step) {
  Atoms atoms(me, problem);
  co_await atoms.sampled_step(me, step);
}

constexpr std::size_t sampled_steps = 2;
// What ghosts and sums take which are not late differs by so much at most from what they take in a step.
constexpr double share_of_lateness = 0.05;
// And an exchange by so much where turns are left out, even few: who meets whom then is another one.
constexpr double share_of_order = 0.1;

// What exchanges of the mesh take more than what the first of the steps has run of them.
struct Rest {
  double ps = 0;
  double bound_ps = 0;
};

// By how much the waiting of so many turns may grow beyond their root, at most, because some ranks are slow in all of
// them, and late because of the exchange before: what is waited for of two things is no more than what is waited for of
// each, and of so many partners the latest is late by so many standard deviations.
double lasting_ps(double turns, double own_ps, double before_ps) {
  return std::sqrt(2 * std::log(turns + 1)) * std::hypot(own_ps, before_ps);
}

// Between the two ends that the waiting may have grown to, the lower one is taken, for ranks are slow in turn.
Rest rest_of(const Problem& problem, const std::array<SampledStep, sampled_steps>& steps) {
  Rest rest;
  double before_ps = 0;  // that ranks differ by at the end of the exchange before, as those differ that are slow in all
  std::map<std::size_t, std::vector<double>> alike;  // all turns of an exchange, by the first of its kind
  for (std::size_t number = 0; number < problem.remaps.size(); ++number) {
    const Remap::Sample& first = steps[0].remaps[number];
    const Remap::Sample& second = steps[1].remaps[number];
    if (first.is_all()) {
      before_ps = 0;
      continue;
    }
    const double own_ps = first.turns() * spread_in_common(first.of_ranks_ps(), second.of_ranks_ps());
    const double most_ps = lasting_ps(first.turns(), own_ps, before_ps);
    before_ps = own_ps;
    rest.ps -= first.run_ps();
    for (const SampledStep& step : steps) {
      const Remap::Sample& remap = step.remaps[number];
      const double root = std::sqrt(remap.times());
      const double all_ps = remap.run_ps() + remap.left_ps() + remap.waited_ps() * (root - 1);
      rest.ps += all_ps / sampled_steps;
      const double grown_ps = std::min(remap.waited_ps() * (remap.times() - root), most_ps);
      rest.bound_ps += (grown_ps + share_of_order * all_ps) / sampled_steps;
      alike[problem.kinds[number]].push_back(all_ps);
    }
  }
  Estimate spread;
  for (const auto& [kind, all_ps] : alike) {
    spread = spread + Estimate::mean_of(all_ps) * (static_cast<double>(all_ps.size()) / sampled_steps);
  }
  rest.bound_ps += spread.bound();
  return rest;
}

std::array<SampledStep, sampled_steps> drawn_steps(const Problem& problem, std::uint64_t seed) {
  const RandomStream draws(seed, 0, Purpose::workload);
  std::array<SampledStep, sampled_steps> steps;
  std::uint32_t draw = 0;
  for (SampledStep& step : steps) {
    for (const Remap& remap : problem.remaps) {
      constexpr std::uint32_t places = 1U << 20;
      step.remaps.emplace_back(remap, problem.sample, draws.below(draw++, places) / double{places});
    }
  }
  steps[0].has_rebuild = problem.rebuild <= problem.steps;
  steps[1].is_mesh_only = true;
  return steps;
}

// What the same is of which one was run, a step has three times: ghosts' positions, their forces, and once more
// positions for fix shake. Of six sums three were run, of which the last did not wait for anybody.
void run_sample(Stage& stage, const Problem& problem, Answer& answer) {
  std::array<SampledStep, sampled_steps> steps = drawn_steps(problem, stage.spec().number(fields::run_seed));
  const std::array<Job::Program, sampled_steps> programs{[&](Rank& me) { return sampled_step(me, problem, steps[0]); },
                                                         [&](Rank& me) { return sampled_step(me, problem, steps[1]); }};
  stage.run_side_by_side(programs, answer);

  const SampledStep& step = steps[0];
  const Rest rest = rest_of(problem, steps);
  const auto mean_ps = [&](std::uint64_t of_all) { return static_cast<double>(of_all) / stage.ranks(); };
  std::uint64_t asks = 0;
  std::uint64_t rebuilds = 0;
  for (std::uint64_t number = 1; number <= problem.steps; ++number) {
    if (problem.asks(number)) ++asks;
    if (problem.rebuilds(number)) ++rebuilds;
  }
  const auto of_step = [&](std::uint64_t in_all) {
    return static_cast<double>(in_all) / static_cast<double>(problem.steps);
  };
  const double ghosts_ps = mean_ps(step.phases_ps[Phase::ghosts]);
  std::array<double, phase_names.size()> more_ps{};
  more_ps[Phase::ghosts] = 2 * ghosts_ps + (mean_ps(step.rebuild_ps) - ghosts_ps) * of_step(rebuilds);
  more_ps[Phase::mesh] = rest.ps;
  more_ps[Phase::sums] = mean_ps(step.sum_ps) * (3 + of_step(asks + sums_of_output));
  double ps = static_cast<double>(step.ended.ps);
  for (std::size_t phase = 0; phase < more_ps.size(); ++phase) {
    const double took_ps = mean_ps(step.phases_ps[phase]) + more_ps[phase];
    answer.phases.emplace_back(phase_names[phase], Duration{static_cast<std::uint64_t>(took_ps)});
    ps += more_ps[phase];
  }
  const double late_ps = static_cast<double>(step.slowest_work.ps) - mean_ps(step.phases_ps[Phase::work]);
  answer.time = Duration{static_cast<std::uint64_t>(ps)};
  answer.sampled = true;
  const double not_run_ps = more_ps[Phase::ghosts] + more_ps[Phase::sums];
  answer.error_bound = ps > 0 ? (rest.bound_ps + late_ps + share_of_lateness * not_run_ps) / ps : 0;
}

// The next number that has no other prime factors than 2, 3 and 5.
std::uint32_t smooth(double least) {
  for (auto number = static_cast<std::uint32_t>(std::ceil(least));; ++number) {
    std::uint32_t rest = number;
    for (const std::uint32_t factor : {2U, 3U, 5U}) {
      while (rest % factor == 0) rest /= factor;
    }
    if (rest == 1) return number;
  }
}

// The divisor for which one's share of a mesh of `width` by `height` has the least edges.
std::uint32_t pencils_across(std::uint32_t ranks, std::uint32_t width, std::uint32_t height) {
  std::uint32_t best = 1;
  std::uint64_t least = UINT64_MAX;
  std::uint64_t area = 0;
  for (std::uint32_t across = 1; across <= ranks; ++across) {
    if (ranks % across != 0) continue;
    const std::uint64_t x = (width + across - 1) / across;
    const std::uint64_t y = (height + ranks / across - 1) / (ranks / across);
    if (x + y > least || (x + y == least && x * y <= area)) continue;
    best = across;
    least = x + y;
    area = x * y;
  }
  return best;
}

std::uint32_t largest_divisor_to_root(std::uint32_t ranks) {
  auto divisor = static_cast<std::uint32_t>(std::sqrt(static_cast<double>(ranks)));
  while (ranks % divisor != 0) --divisor;
  return divisor;
}

std::optional<Triple> three(Parameters& parameters, const std::string& name, std::uint32_t most) {
  if (!parameters.has(name)) return std::nullopt;
  const auto [x, y, z] = parameters.three(name, 1, most);
  return Triple{static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(z)};
}

// Layers of one's own, `reach` deep on each side, that others need: along x, then along y with what has come along x.
// A layer deeper than a rank's box comes in several swaps.
std::vector<Swap> ghosts_of(const Cut& bricks, const std::array<double, 3>& sides, double reach, double per_volume) {
  std::vector<Swap> swaps;
  std::array<double, 3> extents = sides;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const double across = extents[(axis + 1) % 3] * extents[(axis + 2) % 3] * per_volume;
    for (double done = 0; bricks.pieces[axis] > 1 && done < reach; done += sides[axis]) {
      const double amount = std::min(reach - done, sides[axis]) * across;
      swaps.push_back({.axis = axis, .on = false, .amount = amount, .back = amount});
      swaps.push_back({.axis = axis, .on = true, .amount = amount, .back = amount});
    }
    extents[axis] += 2 * reach;
  }
  return swaps;
}

std::vector<Shelf> shelves(const Cut& bricks, std::size_t axis, double length, double reach, std::uint32_t order) {
  std::vector<Shelf> shelves;
  const double per_length = bricks.points[axis] / length;
  const double side = length / bricks.pieces[axis];
  const double shift = order % 2 == 1 ? 0.5 : 0;
  for (std::uint32_t piece = 0; piece < bricks.pieces[axis]; ++piece) {
    const Cut::Span own = bricks.span(axis, piece);
    const double lowest = std::floor((piece * side - reach) * per_length + shift) - (order - 1) / 2;
    const double highest = std::floor(((piece + 1) * side + reach) * per_length + shift) + order / 2;
    shelves.push_back(
        {.own = own.last - own.first,
         .below = static_cast<std::uint64_t>(std::max(static_cast<double>(own.first) - lowest, 0.0)),
         .above = static_cast<std::uint64_t>(std::max(highest + 1 - static_cast<double>(own.last), 0.0))});
  }
  return shelves;
}

void add_transforms(Problem& problem, std::uint32_t ranks, bool ik) {
  const Triple mesh = problem.bricks.points;
  const auto pencils = [&](std::uint32_t x, std::uint32_t y, std::uint32_t z) {
    return Cut{.points = mesh, .pieces = {x, y, z}, .box = {x, y, z}};
  };
  const std::uint32_t across = pencils_across(ranks, mesh[1], mesh[2]);
  const std::uint32_t first = largest_divisor_to_root(ranks);
  const Cut along_x = pencils(1, across, ranks / across);
  const Cut along_y = pencils(first, 1, ranks / first);
  const Cut along_z = pencils(first, ranks / first, 1);
  constexpr Bytes real{8};
  constexpr Bytes complex{16};
  problem.remaps.emplace_back(problem.bricks, along_x, real);
  // There and back in the same pieces, then from there once or for each direction of the force to the bricks.
  const Remap turn(along_x, along_y, complex);
  const Remap turn_again(along_y, along_z, complex);
  problem.remaps.insert(problem.remaps.end(), {turn, turn_again, Remap(along_z, along_x, complex)});
  problem.kinds = {0, 1, 2, 3};
  const Remap home(along_z, problem.bricks, complex);
  problem.fields = ik ? 3 : 1;
  for (std::uint64_t field = 0; field < problem.fields; ++field) {
    problem.remaps.insert(problem.remaps.end(), {turn, turn_again, home});
    problem.kinds.insert(problem.kinds.end(), {1, 2, 6});
  }
}

Problem problem_of(Stage& stage, Parameters& parameters) {
  Problem problem;
  const Grid grid = Grid::read(parameters, stage.ranks());
  problem.bricks.pieces = grid.sides;
  if (const auto bins = three(parameters, "bins", UINT32_MAX)) {
    const auto [x, y, z] = *bins;
    if (grid.sides[0] % x != 0 || grid.sides[1] % y != 0 || grid.sides[2] % z != 0 ||
        std::uint64_t{x} * y * z != stage.placement().per_node()) {
      throw SpecError("bins = " + parameters.text("bins") +
                      ": accepted are divisors of the grid's sides that are the ranks of a node together");
    }
    problem.bricks.box = *bins;
  }
  constexpr std::uint32_t most_pm = 1'000'000'000;
  const auto atoms = static_cast<double>(parameters.number("atoms", 1, 1'000'000'000));
  const double density_pm3 = static_cast<double>(parameters.number("density", 1, 100'000'000)) * 1e-12;
  std::array<double, 3> box{};
  const std::optional<Triple> given = three(parameters, "box", most_pm);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    box[axis] = given ? (*given)[axis] : std::cbrt(atoms / density_pm3) * grid.sides[axis];
  }
  const auto cutoff = static_cast<double>(parameters.number("cutoff", 1, most_pm));
  const auto skin = static_cast<double>(parameters.number("skin", 0, most_pm));
  const auto spacing = static_cast<double>(parameters.number("spacing", 1, most_pm));
  const std::optional<Triple> mesh = three(parameters, "mesh", 1U << 20);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    problem.bricks.points[axis] = mesh ? (*mesh)[axis] : smooth(box[axis] / spacing);
    if (problem.bricks.points[axis] < grid.sides[axis]) {
      throw SpecError((mesh ? "mesh = " + parameters.text("mesh") : "spacing = " + parameters.text("spacing")) +
                      " gives " + std::to_string(problem.bricks.points[axis]) + " points along axis " +
                      std::to_string(axis) + ": accepted is at least one for each of its " +
                      std::to_string(grid.sides[axis]) + " ranks");
    }
  }

  std::array<double, 3> sides{};
  for (std::size_t axis = 0; axis < 3; ++axis) sides[axis] = box[axis] / grid.sides[axis];
  const double per_volume = atoms / (sides[0] * sides[1] * sides[2]);
  problem.ghosts = ghosts_of(problem.bricks, sides, cutoff + skin, per_volume);
  const auto order = static_cast<std::uint32_t>(parameters.number("order", 1, 7));
  for (std::size_t axis = 0; axis < 3; ++axis) {
    problem.migrants[axis] = sides[(axis + 1) % 3] * sides[(axis + 2) % 3] * per_volume * drift_pm;
    problem.shelves[axis] = shelves(problem.bricks, axis, box[axis], skin / 2, order);
    for (const Shelf& shelf : problem.shelves[axis]) {
      const std::uint64_t depth = std::max(shelf.below, shelf.above);
      const std::uint64_t least = problem.bricks.points[axis] / problem.bricks.pieces[axis];
      problem.rounds[axis] = std::max(problem.rounds[axis], static_cast<std::uint32_t>((depth + least - 1) / least));
    }
  }
  const std::string& differentiate = parameters.text("differentiate");
  if (differentiate != "ik" && differentiate != "ad") {
    throw SpecError("differentiate = `" + differentiate + "`: accepted is ik or ad");
  }
  problem.sample = static_cast<std::uint32_t>(parameters.number_or("sample", 0, 0, 1000));
  add_transforms(problem, stage.ranks(), differentiate == "ik");
  problem.steps = parameters.number("steps", 1, 1'000'000);
  problem.rebuild = parameters.number("rebuild", 1, 1'000'000);
  problem.work = Duration{parameters.number("atom_work_ps", 0, 1'000'000'000)} * static_cast<std::uint64_t>(atoms);
  return problem;
}

}  // namespace

Answer predict_lammps(Stage& stage, Parameters& parameters) {
  Problem problem = problem_of(stage, parameters);
  parameters.check_all_used();
  Answer answer;
  if (problem.sample > 0) {
    stage.refuse_passing_faults("sample=0");
    run_sample(stage, problem, answer);
  } else {
    stage.run([&](Rank& me) { return whole_steps(me, problem); }, answer,
              [&](Job& job) {
                for (std::size_t phase = 0; phase < phase_names.size(); ++phase) {
                  problem.phases[phase] = job.phases().named(phase_names[phase]);
                }
              },
              [&](Job& job) { answer.count_step_of(job, problem.steps); });
  }
  answer.add_sides("grid", problem.bricks.pieces);
  answer.add_sides("mesh", problem.bricks.points);
  answer.chosen = problem.selection.chosen();
  return answer;
}

}  // namespace dryfly::motif
