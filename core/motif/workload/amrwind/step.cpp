#include "core/motif/workload/amrwind/step.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dryfly::motif::amrwind {
namespace {

constexpr std::uint64_t word = 8;
constexpr Nodal in_cells{false, false, false};
constexpr Nodal on_nodes{true, true, true};
// The atmospheric boundary layer has no end along x and y.
constexpr Closed closed{true, true, false};

constexpr std::uint32_t state_depth = 3;  // ghost cells of velocity and temperature, of Godunov's method
constexpr std::uint64_t velocities = 3;

std::uint32_t bits(const Nodal& nodal) { return nodal[0] + 2U * nodal[1] + 4U * nodal[2]; }
Nodal nodal_of(std::uint32_t bits) { return {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0}; }
// Faces across an axis.
Nodal on_faces(std::size_t axis) {
  Nodal nodal = in_cells;
  nodal[axis] = true;
  return nodal;
}

}  // namespace

// A linear operator: what its loops move for a point, in words, and what it sends.
struct Step::Operator {
  Nodal nodal = in_cells;
  std::uint64_t components = 1;
  bool crosswise = true;  // without corners
  bool singular = false;  // a constant is added to the right-hand side, so that there is a solution
  bool coefficients = false;
  std::uint64_t sweep_words = 1;  // one colour, or one sweep over nodes
  std::uint32_t sweeps = 2;       // of a smoothing: colours that are filled before each, or sweeps behind one filling
  std::uint64_t apply_words = 1;
  std::uint64_t top_words = 0;  // on the finest level besides

  bool is_nodal() const { return nodal[0]; }
  std::uint64_t offset_bytes() const { return (is_nodal() ? 2 : components) * word; }
};

// A level is coarsened while all axes can be. Below so many cells of a rank on average, boxes are no longer those of
// the finest level.
Levels::Levels(const Problem& problem) : boxes_{Boxes::even(problem.sides, problem.cells)} {
  const std::uint32_t ranks = boxes_[0].count();
  Triple domain{};
  for (std::size_t axis = 0; axis < 3; ++axis) domain[axis] = boxes_[0].cuts[axis].back();
  const double threshold = 0.999 * problem.gather * problem.gather * problem.gather;
  const auto halves = [](std::uint32_t side) { return side % 2 == 0 && side >= 4; };
  while (std::ranges::all_of(domain, halves)) {
    for (std::uint32_t& side : domain) side /= 2;
    const Boxes& finer = boxes_.back();
    const bool own =
        first_gathered_ == 0 && finer.can_be_halved(2) && static_cast<double>(finer.cells()) / 8 / ranks >= threshold;
    if (!own && !finer.can_be_halved(1)) break;
    if (!own && first_gathered_ == 0 && ranks > 1) first_gathered_ = count();
    boxes_.push_back(own || ranks == 1 ? finer.coarsened() : Boxes::of_domain(domain, problem.gather, ranks));
  }
  if (first_gathered_ == 0) first_gathered_ = count();
  for (const Boxes& level : boxes_) {
    cells_.emplace_back(ranks, 0);
    for (std::uint32_t box = 0; box < level.count(); ++box) cells_.back()[level.owners[box]] += level.cells_of(box);
  }
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    if (at_bottom(rank)) bottom_ranks_.push_back(rank);
  }
}

Step::Step(const Problem& problem) : ranks_(problem.sides[0] * problem.sides[1] * problem.sides[2]), levels_(problem) {
  const Operator temperature{.components = 1, .coefficients = true, .sweep_words = 7, .sweeps = 2, .apply_words = 6};
  const Operator velocity{.components = velocities,
                          .crosswise = false,
                          .coefficients = true,
                          .sweep_words = 19,
                          .sweeps = 2,
                          .apply_words = 16,
                          .top_words = 36};
  sum(word, 2);                      // the longest time step
  ghosts(0, 1, in_cells, false, 1);  // eddy viscosity
  compute(0, 6, 2);
  fill(velocity, 0);
  compute(0, velocity.apply_words + velocity.top_words, 2);
  fill(temperature, 0);
  compute(0, temperature.apply_words);
  ghosts(0, 1, in_cells, false, velocities);  // forces
  ghosts(0, 1, in_cells, false, 1);
  // Godunov's method, for velocities to the faces and for what they carry.
  compute(0, problem.advection_words, 8);
  project_faces(problem);
  compute(0, 6 * temperature.components, 2);
  solve(temperature, problem.temperature);
  ghosts(0, state_depth, in_cells, false, 1);
  fill(velocity, 0);
  compute(0, velocity.apply_words + velocity.top_words, 2);
  compute(0, 6 * velocity.components, 2);
  solve(velocity, problem.velocity);
  ghosts(0, state_depth, in_cells, false, velocities);
  project_nodes(problem);
  average(problem);
}

Phase Step::phase_of(std::uint32_t level, Phase otherwise) const {
  if (level > 0 && level + 1 == levels_.count()) return Phase::bottom;
  return levels_.gathered(level) ? Phase::coarse : otherwise;
}

void Step::add(const Part& part) {
  const auto [found, fresh] = numbers_.try_emplace(part, static_cast<std::uint32_t>(parts_.size()));
  if (fresh) parts_.push_back(part);
  order_.push_back(found->second);
}

void Step::exchange(const Key& key, std::uint64_t bytes_of_point, Phase phase) {
  if (ranks_ == 1) return;
  const auto [found, fresh] = exchanges_.try_emplace(key, static_cast<std::uint32_t>(makers_.size()));
  if (fresh) {
    makers_.emplace_back([this, key] {
      const auto [form, level, depth, nodal, crosswise] = key;
      const Boxes& boxes = levels_.boxes(level);
      switch (static_cast<Form>(form)) {
        case Form::ghosts:
          return std::make_unique<Traffic>(
              Traffic::ghosts(boxes, ranks_, depth, nodal_of(nodal), crosswise != 0, closed));
        case Form::shared:
          return std::make_unique<Traffic>(Traffic::shared_points(boxes, ranks_, closed));
        case Form::down:
          return std::make_unique<Traffic>(
              Traffic::copies(boxes.coarsened(), levels_.boxes(level + 1), ranks_, nodal_of(nodal)));
        case Form::up:
          break;
      }
      return std::make_unique<Traffic>(
          Traffic::copies(levels_.boxes(level + 1), boxes.coarsened(), ranks_, nodal_of(nodal)));
    });
  }
  add({.kind = Part::Kind::exchange, .phase = phase, .what = found->second, .size = bytes_of_point});
}

void Step::ghosts(std::uint32_t level, std::uint32_t depth, const Nodal& nodal, bool crosswise,
                  std::uint64_t components) {
  exchange({static_cast<std::uint32_t>(Form::ghosts), level, depth, bits(nodal), crosswise}, components * word,
           phase_of(level, Phase::halos));
}

void Step::shared(std::uint32_t level) {
  exchange({static_cast<std::uint32_t>(Form::shared), level, 0, bits(on_nodes), 0}, word,
           phase_of(level, Phase::halos));
}

// Where the boxes of two levels are the same nothing is sent.
void Step::copy(Form form, std::uint32_t fine, const Nodal& nodal, std::uint64_t components) {
  if (!levels_.gathered(fine + 1)) return;
  exchange({static_cast<std::uint32_t>(form), fine, 0, bits(nodal), 0}, components * word, Phase::coarse);
}

void Step::sum(std::uint64_t bytes, std::uint64_t times) {
  for (; times > 0; --times) add({.kind = Part::Kind::sum, .phase = Phase::sums, .size = bytes});
}

void Step::bottom_sum(std::uint64_t bytes, std::uint64_t times) {
  for (; times > 0; --times) add({.kind = Part::Kind::bottom_sum, .phase = Phase::bottom, .size = bytes});
}

void Step::compute(std::uint32_t level, std::uint64_t words, std::uint32_t kernels) {
  add({.kind = Part::Kind::compute,
       .phase = phase_of(level, Phase::work),
       .what = level,
       .size = words * word,
       .kernels = kernels});
}

void Step::fill(const Operator& how, std::uint32_t level) {
  ghosts(level, 1, how.nodal, how.crosswise, how.components);
}

// Of cells one colour after the other, each behind a filling; of nodes so many sweeps behind one. What is zero needs
// no filling.
void Step::smooth(const Operator& how, std::uint32_t level, bool from_zero) {
  if (how.is_nodal()) {
    if (!from_zero) fill(how, level);
    compute(level, how.sweep_words * how.sweeps, how.sweeps);
    shared(level);
    return;
  }
  for (std::uint32_t colour = 0; colour < how.sweeps; ++colour) {
    if (colour > 0 || !from_zero) fill(how, level);
    compute(level, how.sweep_words);
  }
}

// The product, and the right-hand side without it.
void Step::residual(const Operator& how, std::uint32_t level) {
  fill(how, level);
  compute(level, how.apply_words + 3 * how.components + (level == 0 ? how.top_words : 0), 2);
}

// Counted in AMR-Wind, where the coarsest level is 8 to 1,024 cells wide: of a Poisson equation on faces a tenth of its
// width in iterations, on nodes three times its root; diffusion takes half of one. No more than the projectors allow.
std::uint64_t Step::halves_of(const Operator& how, const Solve& effort) const {
  if (effort.halves > 0) return effort.halves;
  if (!how.singular) return 1;
  std::uint32_t width = 0;
  for (const std::vector<std::uint32_t>& axis : levels_.boxes(levels_.count() - 1).cuts)
    width = std::max(width, axis.back());
  const double iterations = how.is_nodal() ? std::min(3 * std::sqrt(width), 100.0) : std::min(0.1 * width, 200.0);
  return std::max(static_cast<std::uint64_t>(std::llround(2 * iterations)), std::uint64_t{1});
}

// BiCGStab as MLCGSolver has it, on the ranks of the coarsest level. It may end in the middle of an iteration.
void Step::bottom(const Operator& how, std::uint64_t halves) {
  const std::uint32_t level = levels_.count() - 1;
  const std::uint64_t vectors = how.components;
  const auto apply = [&] {
    fill(how, level);
    compute(level, how.apply_words);
  };
  if (how.singular) bottom_sum(how.offset_bytes());
  compute(level, 4 * vectors, 3);
  bottom_sum(word);
  for (std::uint64_t half = 0; half < halves; ++half) {
    if (half % 2 == 0) {
      compute(level, 8 * vectors, 3);
      bottom_sum(word);
      apply();
      compute(level, 2 * vectors);
      bottom_sum(word);
      compute(level, 8 * vectors, 4);
      bottom_sum(word, 2);  // the same norm is asked for twice
    } else {
      apply();
      compute(level, 3 * vectors, 2);
      bottom_sum(2 * word);
      compute(level, 7 * vectors, 3);
      bottom_sum(word);
    }
  }
}

void Step::cycle(const Operator& how, std::uint64_t halves) {
  const std::uint64_t vectors = how.components;
  for (std::uint32_t level = 0; level + 1 < levels_.count(); ++level) {
    compute(level, vectors);  // the correction is set to zero
    smooth(how, level, true);
    smooth(how, level, false);
    residual(how, level);
    if (how.is_nodal()) fill(how, level);
    compute(level, 2 * vectors);
    copy(Form::down, level, how.nodal, vectors);
  }
  bottom(how, halves);
  for (std::uint32_t level = levels_.count() - 1; level-- > 0;) {
    copy(Form::up, level, how.nodal, vectors);
    compute(level, 3 * vectors);
    smooth(how, level, false);
    smooth(how, level, false);
  }
}

// Of cells one, of faces three for each component.
void Step::coarsen_coefficients(const Operator& how) {
  for (std::uint32_t level = 0; level + 1 < levels_.count(); ++level) {
    compute(level, 2 + 6 * how.components, 4);
    copy(Form::down, level, in_cells, 1);
    for (std::size_t axis = 0; axis < 3; ++axis) copy(Form::down, level, on_faces(axis), how.components);
  }
}

void Step::solve(const Operator& how, const Solve& effort) {
  const std::uint64_t vectors = how.components;
  if (how.coefficients) {
    coarsen_coefficients(how);
    sum(word, 2);  // whether the operator is singular
  }
  if (how.singular) sum(how.offset_bytes());
  residual(how, 0);
  compute(0, 2 * vectors, 2);
  sum(2 * word);
  const std::uint64_t halves = halves_of(how, effort);
  for (std::uint64_t number = 0; number < effort.cycles; ++number) {
    if (how.singular) {
      compute(0, 3 * vectors, 2);
      sum(how.offset_bytes());
    }
    cycle(how, halves);
    compute(0, 3 * vectors);
    if (how.is_nodal()) shared(0);
    residual(how, 0);
    compute(0, vectors);
    sum(word);
  }
}

void Step::project_faces(const Problem& problem) {
  const Operator poisson{.singular = true, .sweep_words = 3, .sweeps = 2, .apply_words = 2};
  compute(0, 5, 2);
  solve(poisson, problem.mac);
  fill(poisson, 0);
  compute(0, 10, 6);
  // Once for the walls, once for the neighbours.
  for (int time = 0; time < 2; ++time) {
    for (std::size_t axis = 0; axis < 3; ++axis) ghosts(0, 1, on_faces(axis), false, 1);
  }
}

void Step::project_nodes(const Problem& problem) {
  // Solution and right-hand side, and the mask, which has half a word.
  const Operator laplacian{.nodal = on_nodes,
                           .crosswise = false,
                           .singular = true,
                           .sweep_words = 4,
                           .sweeps = problem.sweeps,
                           .apply_words = 3};
  compute(0, 10, 2);
  ghosts(0, 1, in_cells, false, velocities);
  solve(laplacian, problem.nodal);
  compute(0, 20, 5);
  ghosts(0, state_depth, in_cells, false, velocities);
}

// Over planes, of which there are as many as cells along z: velocities, their magnitude, temperature; the same on the
// finest level with two moments; viscosity.
void Step::average(const Problem& problem) {
  const std::uint64_t line = std::uint64_t{problem.sides[2]} * problem.cells[2] * word;
  compute(0, 18, 9);
  sum(velocities * line);
  sum(line, 2);
  sum(velocities * line);
  sum(line, 5);
}

}  // namespace dryfly::motif::amrwind
