// Parameters, in base units: x, y, z, the grid of ranks; bins=AxBxC, of the ranks of a node in it; atoms, of a
// rank; box=AxBxC, of the whole, in pm; density, atoms in a cube of 10 nm; cutoff, skin and spacing, in pm;
// mesh=AxBxC; order of the stencil; differentiate=ik|ad; steps; rebuild, steps from one neighbour list to
// the next; atom_work_ps, of an atom and step; sample: 0, or each part of a step is run once, with all ranks beginning
// it together and so many partners in an exchange of the transforms, and steps are made of what that has taken.
//
// What a step of LAMMPS sends with `atom_style full`, `kspace_style pppm`, `fix shake` and `fix npt`, as its benchmark
// of rhodopsin has it (docs/model/skeleton-lammps.md).
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "core/motif/collective/selection.hpp"
#include "core/motif/workload/grid.hpp"
#include "core/motif/workload/pencils.hpp"
#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {
namespace {

// Of atom_style full.
constexpr double bytes_of_position = 24;  // and of a force
constexpr double bytes_of_ghost = 64;
constexpr double bytes_of_migrant = 560;
// How far atoms that leave a box have come on average until the next rebuild, in pm.
constexpr double drift_pm = 2.5;

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

// What each part of a step takes where all ranks begin it together, one of each kind.
struct Parts {
  Duration ghosts;
  Duration planes_back;
  Duration planes_on;
  Duration transforms;
  Duration sum;
};

struct Problem {
  Cut bricks;
  std::vector<Swap> ghosts;  // atoms
  std::array<std::vector<Shelf>, 3> shelves;
  Triple rounds{1, 1, 1};  // of swaps along an axis, of points
  std::array<double, 3> migrants{};
  std::vector<Remap> remaps;                                    // of a step, in order
  std::vector<std::pair<Remap, std::uint64_t>> remaps_by_kind;  // how often each
  std::uint64_t fields = 1;                                     // that come back from the mesh
  std::uint64_t steps = 1;
  std::uint64_t rebuild = 1;
  std::uint32_t sample = 0;
  Duration work;
  Selection selection = Selection::of_library("mpich");
  std::uint16_t phase_work = 0;
  std::uint16_t phase_ghosts = 0;
  std::uint16_t phase_mesh = 0;
  std::uint16_t phase_sums = 0;
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
    for (step_ = 1; step_ <= problem_.steps; ++step_) {
      const std::uint64_t since = (step_ - 1) % problem_.rebuild + 1;
      if (since >= std::min<std::uint64_t>(delay, problem_.rebuild)) co_await sums(me, Bytes{4}, 1);
      me.enter(problem_.phase_ghosts);
      if (since == problem_.rebuild) {
        co_await rebuild(me);
      } else {
        co_await swaps(me, problem_.ghosts, bytes_of_position, false);
      }
      me.enter(problem_.phase_work);
      co_await me.compute(problem_.work);
      me.enter(problem_.phase_mesh);
      co_await swaps(me, planes_, 8, true);
      for (const Remap& remap : problem_.remaps) co_await remap.run(me, next_tag());
      co_await swaps(me, planes_, 8.0 * static_cast<double>(problem_.fields), false);
      co_await sums(me, Bytes{48}, 1);  // the virial of the mesh
      me.enter(problem_.phase_ghosts);
      co_await swaps(me, problem_.ghosts, bytes_of_position, true);
      co_await swaps(me, problem_.ghosts, bytes_of_position, false);  // of fix shake
      co_await sums(me, Bytes{8}, 1);
      co_await sums(me, Bytes{48}, 4);  // temperatures and pressures of fix npt
    }
    // After the last step energies and pressures are written.
    co_await sums(me, Bytes{8}, 10);
    co_await sums(me, Bytes{16}, 2);
    me.enter(0);
  }

  // The same without rebuilding lists and without output, of parts that have been measured: only the last sum of a step
  // is sent, for which all ranks wait.
  Task steps_of(Rank& me, const Parts& parts) {
    for (step_ = 1; step_ <= problem_.steps; ++step_) {
      me.enter(problem_.phase_ghosts);
      co_await me.compute(parts.ghosts);
      me.enter(problem_.phase_work);
      co_await me.compute(problem_.work);
      me.enter(problem_.phase_mesh);
      co_await me.compute(parts.planes_back + parts.transforms + parts.planes_on);
      me.enter(problem_.phase_ghosts);
      co_await me.compute(parts.ghosts * 2);
      me.enter(problem_.phase_sums);
      co_await me.compute(parts.sum * 5);
      co_await sums(me, Bytes{48}, 1);
    }
    me.enter(0);
  }

  Task ghosts(Rank& me) { return swaps(me, problem_.ghosts, bytes_of_position, false); }
  Task planes_back(Rank& me) { return swaps(me, planes_, 8, true); }
  Task planes_on(Rank& me) { return swaps(me, planes_, 8.0 * static_cast<double>(problem_.fields), false); }
  Task sum(Rank& me) { return sums(me, Bytes{48}, 1); }

 private:
  static constexpr std::uint64_t delay = 5;  // steps before which nobody asks how far atoms have come
  static constexpr std::uint32_t tags = 1U << 24;

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
    me.enter(problem_.phase_sums);
    const CollectiveCall call{.what = Collective::allreduce, .size = size, .element = Bytes{8}};
    const CollectiveCall of_int{.what = Collective::allreduce, .size = size, .element = Bytes{4}};
    for (std::uint64_t turn = 0; turn < count; ++turn) {
      co_await run_collective(me, world(me), size.count % 8 == 0 ? call : of_int, problem_.selection);
    }
  }

  Rank& me_;
  const Problem& problem_;
  const std::vector<Swap> planes_;
  std::uint64_t step_ = 0;
  std::uint32_t tag_ = 0;
};

Task whole_steps(Rank& me, const Problem& problem) {
  Atoms atoms(me, problem);
  co_await atoms.whole_steps(me);
}

Task steps_of(Rank& me, const Problem& problem, const Parts& parts) {
  Atoms atoms(me, problem);
  co_await atoms.steps_of(me, parts);
}

Task one(Rank& me, const Problem& problem, Task (Atoms::*part)(Rank&)) {
  Atoms atoms(me, problem);
  co_await (atoms.*part)(me);
}

Parts measure(Stage& stage, const Problem& problem, Answer& answer) {
  // On average of the ranks: what the slowest adds, and noise, all ranks wait for at the end of a step.
  const auto taken = [&](Task (Atoms::*part)(Rank&)) {
    double ps = 0;
    stage.run([&](Rank& me) { return one(me, problem, part); }, answer,
              [&](Job& job) {
                for (std::uint32_t rank = 0; rank < job.count(); ++rank)
                  ps += static_cast<double>(job.rank(rank).now().ps);
              });
    return Duration{static_cast<std::uint64_t>(ps / stage.ranks())};
  };
  Parts parts{.ghosts = taken(&Atoms::ghosts),
              .planes_back = taken(&Atoms::planes_back),
              .planes_on = {},
              .transforms = {},
              .sum = taken(&Atoms::sum)};
  parts.planes_on = problem.fields == 1 ? parts.planes_back : taken(&Atoms::planes_on);
  for (const auto& [remap, count] : problem.remaps_by_kind) {
    parts.transforms = parts.transforms + remap.sampled(stage, answer, problem.sample) * count;
  }
  return parts;
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
  const Remap home(along_z, problem.bricks, complex);
  problem.fields = ik ? 3 : 1;
  for (std::uint64_t field = 0; field < problem.fields; ++field) {
    problem.remaps.insert(problem.remaps.end(), {turn, turn_again, home});
  }
  problem.remaps_by_kind = {{problem.remaps[0], 1},
                            {turn, problem.fields + 1},
                            {turn_again, problem.fields + 1},
                            {problem.remaps[3], 1},
                            {home, problem.fields}};
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
  Parts parts;
  if (problem.sample > 0) parts = measure(stage, problem, answer);
  stage.run([&](Rank& me) { return problem.sample > 0 ? steps_of(me, problem, parts) : whole_steps(me, problem); },
            answer,
            [&](Job& job) {
              problem.phase_work = job.phases().named("work");
              problem.phase_ghosts = job.phases().named("ghosts");
              problem.phase_mesh = job.phases().named("mesh");
              problem.phase_sums = job.phases().named("sums");
            },
            [&](Job& job) { answer.count_step_of(job, problem.steps); });
  answer.sampled = problem.sample > 0;
  if (answer.sampled) answer.error_bound = std::numeric_limits<double>::quiet_NaN();
  answer.add_sides("grid", problem.bricks.pieces);
  answer.add_sides("mesh", problem.bricks.points);
  return answer;
}

}  // namespace dryfly::motif
