// HPCG: conjugate gradients on a 27-point stencil with a multigrid V-cycle of symmetric Gauss-Seidel sweeps as its
// preconditioner; the messages of the reference code and the time of its kernels (docs/model/skeleton-hpcg.md).
//
// Parameters, in base units: x, y, z, the grid of ranks; local=AxBxC, points of a rank; levels, of the multigrid;
// iterations; colours, of points that a sweep on a GPU does at once, one after the other; library, which chooses how to
// add up.
//
// Source of the model: the benchmark's specification (Dongarra, Heroux, Luszczek, SAND2013-8752) and its reference code
// 3.1: what is exchanged, what is added up, and the operations that count for its result.
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/motif/collective/selection.hpp"
#include "core/motif/workload/grid.hpp"
#include "core/motif/workload/work_rates.hpp"
#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {
namespace {

constexpr std::uint64_t word = 8;
constexpr std::uint64_t row_entries = 27;
// Of a row, a value and a column for each entry.
constexpr std::uint64_t row_bytes = row_entries * (8 + 4);

struct Level {
  Neighbourhood around;
  Duration multiply{};   // by the matrix
  Duration sweep{};      // forward and backward
  Duration restrict {};  // to the next level
  Duration prolong{};    // and back from there
};

struct Phases {
  std::uint16_t dot, allreduce, vectors, product, multigrid, halo;
};

struct Hpcg {
  std::vector<Level> levels;
  Duration dot;
  Duration norm;  // a product of a vector with itself reads one
  Duration update;
  std::uint64_t iterations;
  Selection selection;
  Phases phases;

  Task exchange(Rank& me, const Level& level, std::uint16_t next) const;
  Task smooth(Rank& me, const Level& level) const;
  Task precondition(Rank& me) const;
  Task multiply(Rank& me, const Level& level, std::uint16_t phase) const;
  Task add_up(Rank& me, Duration products) const;
  Task run(Rank& me) const;
};

// As the reference code has it: receives first, then one send after the other is waited for.
Task Hpcg::exchange(Rank& me, const Level& level, std::uint16_t next) const {
  me.enter(phases.halo);
  level.around.receive(me);
  const std::array<std::uint32_t, 3> place = level.around.grid.place_of(me.id());
  for (const Heading& heading : level.around.headings) {
    const std::uint32_t to = level.around.peer(place, heading);
    if (to != Neighbourhood::no_rank) co_await me.send(to, heading.number(), heading.size);
  }
  co_await me.wait_all();
  me.enter(next);
}

Task Hpcg::smooth(Rank& me, const Level& level) const {
  co_await exchange(me, level, phases.multigrid);
  co_await me.compute(level.sweep);
}

Task Hpcg::multiply(Rank& me, const Level& level, std::uint16_t phase) const {
  co_await exchange(me, level, phase);
  co_await me.compute(level.multiply);
}

Task Hpcg::precondition(Rank& me) const {
  me.enter(phases.multigrid);
  for (std::size_t depth = 0; depth + 1 < levels.size(); ++depth) {
    co_await smooth(me, levels[depth]);
    co_await multiply(me, levels[depth], phases.multigrid);
    co_await me.compute(levels[depth].restrict);
  }
  co_await smooth(me, levels.back());
  for (std::size_t depth = levels.size() - 1; depth-- > 0;) {
    co_await me.compute(levels[depth].prolong);
    co_await smooth(me, levels[depth]);
  }
}

Task Hpcg::add_up(Rank& me, Duration products) const {
  me.enter(phases.dot);
  co_await me.compute(products);
  me.enter(phases.allreduce);
  co_await run_collective(me, world(me), {.what = Collective::allreduce, .size = Bytes{word}, .element = Bytes{word}},
                          selection);
}

Task Hpcg::run(Rank& me) const {
  for (std::uint64_t iteration = 0; iteration < iterations; ++iteration) {
    co_await precondition(me);
    co_await add_up(me, dot);
    me.enter(phases.vectors);
    co_await me.compute(update);
    me.enter(phases.product);
    co_await multiply(me, levels.front(), phases.product);
    co_await add_up(me, dot);
    me.enter(phases.vectors);
    co_await me.compute(update);
    co_await me.compute(update);
    co_await add_up(me, norm);
  }
  me.enter(0);
}

std::array<std::uint64_t, 3> points_of(Parameters& parameters, std::uint64_t levels) {
  if (!parameters.has("local")) return {104, 104, 104};
  const std::array<std::uint64_t, 3> points = parameters.three("local", 1, 1U << 16);
  const std::uint64_t multiple = std::uint64_t{1} << (levels - 1);
  for (const std::uint64_t side : points) {
    if (side % multiple != 0) {
      throw SpecError("local = " + parameters.text("local") + ": accepted are multiples of " +
                      std::to_string(multiple) + ", which levels = " + std::to_string(levels) + " asks for");
    }
  }
  return points;
}

// Entries of the matrix of all ranks: three in each direction, but for the ends.
double entries(const Grid& grid, const std::array<std::uint64_t, 3>& points) {
  double product = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    product *= 3 * static_cast<double>(grid.sides[axis] * points[axis]) - 2;
  }
  return product;
}

// That the benchmark's result counts, of an iteration of all ranks.
double operations(const Grid& grid, std::array<std::uint64_t, 3> points, std::uint64_t levels, std::uint64_t ranks) {
  const double rows = static_cast<double>(points[0] * points[1] * points[2]) * static_cast<double>(ranks);
  double sum = 3 * 2 * rows + 3 * 2 * rows + 2 * entries(grid, points);
  for (std::uint64_t level = 0; level < levels; ++level) {
    sum += (level + 1 < levels ? 10 : 4) * entries(grid, points);
    for (std::uint64_t& side : points) side /= 2;
  }
  return sum;
}

std::vector<Level> make_levels(const Grid& grid, std::array<std::uint64_t, 3> points, std::uint64_t count,
                               std::uint64_t colours, const WorkRates& rates) {
  std::vector<Level> levels;
  for (std::uint64_t number = 0; number < count; ++number) {
    const std::uint64_t all = points[0] * points[1] * points[2];
    Level level{.around = Neighbourhood::of_box(grid, points, Bytes{word})};
    level.multiply = rates.memory(all * (row_bytes + 2 * word));
    // A sweep reads the right-hand side and the diagonal and changes the vector; a colour is a call of its own.
    const Duration colour = rates.memory(all * (row_bytes + 4 * word) / colours);
    level.sweep = Duration{2 * colours * colour.ps};
    level.restrict = rates.memory(all / 8 * 3 * word + all * word);  // and the next guess is set to zero
    level.prolong = rates.memory(all / 8 * 3 * word);
    levels.push_back(std::move(level));
    for (std::uint64_t& side : points) side /= 2;
  }
  return levels;
}

}  // namespace

Answer predict_hpcg(Stage& stage, Parameters& parameters) {
  const std::uint64_t count = parameters.number_or("levels", 4, 1, 12);
  const std::array<std::uint64_t, 3> points = points_of(parameters, count);
  Grid grid = Grid::read(parameters, stage.ranks());
  grid.closed = false;
  const WorkRates rates(stage.spec(), stage.placement().per_node(), {}, Where::faster);
  const std::uint64_t colours = parameters.number_or("colours", 8, 1, 4096);
  const std::uint64_t all = points[0] * points[1] * points[2];
  Hpcg solver{.levels = make_levels(grid, points, count, colours, rates),
              .dot = rates.memory(all * 2 * word),
              .norm = rates.memory(all * word),
              .update = rates.memory(all * 3 * word),
              .iterations = parameters.number_or("iterations", 3, 1, 1'000'000),
              .selection = Selection::of_library(parameters.text_or("library", "mpich")),
              .phases = {}};
  parameters.check_all_used();
  Answer answer;
  stage.run([&](Rank& me) { return solver.run(me); }, answer,
            [&](Job& job) {
              auto& phases = job.phases();
              solver.phases = {.dot = phases.named("DDOT"),
                               .allreduce = phases.named("Allreduce"),
                               .vectors = phases.named("WAXPBY"),
                               .product = phases.named("SpMV"),
                               .multigrid = phases.named("MG"),
                               .halo = phases.named("halo")};
            },
            [&](Job& job) { answer.count_step_of(job, solver.iterations); });
  const double seconds = static_cast<double>(answer.time.ps) * 1e-12;
  answer.figures.emplace_back("rate_flop_per_s", operations(grid, points, count, stage.ranks()) / seconds);
  answer.add_sides("grid", grid.sides);
  answer.chosen = solver.selection.chosen();
  return answer;
}

}  // namespace dryfly::motif
