// Nekbone: conjugate gradients on a box of spectral elements, without a preconditioner: a product with the stiffness
// matrix element by element, a sum over the points that ranks share, three inner products
// (docs/model/skeleton-nekbone.md).
//
// Parameters, in base units: x, y, z, the grid of ranks; local=AxBxC, elements of a rank; nx1, points of an element
// along an edge; iterations; library, which chooses how to add up.
//
// Source of the model: the program itself (Nek5000/Nekbone, cg.f and the pairwise exchange of gslib): what is
// exchanged, what is read and written, and the operations that it counts.
#include <array>
#include <cstdint>
#include <string>

#include "core/motif/collective/selection.hpp"
#include "core/motif/workload/grid.hpp"
#include "core/motif/workload/work_rates.hpp"
#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {
namespace {

constexpr std::uint64_t word = 8;

struct Nekbone {
  Neighbourhood around;
  Duration copy;      // z = r
  Duration inner;     // weighted inner product of two vectors
  Duration norm;      // of one with itself
  Duration update;    // of a vector by a multiple of another
  Duration multiply;  // all elements' products
  std::uint64_t iterations;
  Selection selection;
  std::uint16_t vectors_phase, sums_phase, product_phase, exchange_phase;

  Task add_up(Rank& me, Duration products) const;
  Task run(Rank& me) const;
};

Task Nekbone::add_up(Rank& me, Duration products) const {
  me.enter(vectors_phase);
  co_await me.compute(products);
  me.enter(sums_phase);
  co_await run_collective(me, world(me), {.what = Collective::allreduce, .size = Bytes{word}, .element = Bytes{word}},
                          selection);
}

Task Nekbone::run(Rank& me) const {
  for (std::uint64_t iteration = 0; iteration < iterations; ++iteration) {
    me.enter(vectors_phase);
    co_await me.compute(copy);
    co_await add_up(me, inner);
    me.enter(vectors_phase);
    co_await me.compute(update);
    me.enter(product_phase);
    co_await me.compute(multiply);
    me.enter(exchange_phase);
    around.exchange(me);
    co_await me.wait_all();
    me.enter(vectors_phase);
    co_await me.compute(update);  // a multiple of the vector is added to the product
    co_await add_up(me, inner);
    me.enter(vectors_phase);
    co_await me.compute(update);
    co_await me.compute(update);
    co_await add_up(me, norm);
  }
  me.enter(0);
}

}  // namespace

Answer predict_nekbone(Stage& stage, Parameters& parameters) {
  Grid grid = Grid::read(parameters, stage.ranks());
  grid.closed = false;
  const std::uint64_t nx1 = parameters.number_or("nx1", 10, 2, 64);
  std::array<std::uint64_t, 3> sides{8, 8, 8};
  if (parameters.has("local")) sides = parameters.three("local", 1, 1U << 16);
  std::array<std::uint64_t, 3> shared{};  // points along each side of a rank's box
  std::uint64_t elements = 1;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    elements *= sides[axis];
    shared[axis] = sides[axis] * (nx1 - 1) + 1;
  }
  const std::uint64_t points = elements * nx1 * nx1 * nx1;
  const WorkRates rates(stage.spec(), stage.placement().per_node(), {}, Where::faster);
  Nekbone solver{.around = Neighbourhood::of_box(grid, shared, Bytes{word}),
                 .copy = rates.memory(points * 2 * word),
                 .inner = rates.memory(points * 3 * word),
                 .norm = rates.memory(points * 2 * word),
                 .update = rates.memory(points * 3 * word),
                 // The vector, six geometric factors, the product.
                 .multiply = rates.memory(points * 8 * word),
                 .iterations = parameters.number_or("iterations", 5, 1, 1'000'000),
                 .selection = Selection::of_library(parameters.text_or("library", "mpich")),
                 .vectors_phase = 0,
                 .sums_phase = 0,
                 .product_phase = 0,
                 .exchange_phase = 0};
  parameters.check_all_used();
  Answer answer;
  stage.run([&](Rank& me) { return solver.run(me); }, answer,
            [&](Job& job) {
              solver.product_phase = job.phases().named("ax");
              solver.exchange_phase = job.phases().named("gs_op");
              solver.sums_phase = job.phases().named("allreduce");
              solver.vectors_phase = job.phases().named("vectors");
            },
            [&](Job& job) { answer.count_step_of(job, solver.iterations); });
  const double seconds = static_cast<double>(answer.time.ps) * 1e-12;
  const double operations =
      static_cast<double>(points) * static_cast<double>(stage.ranks()) * static_cast<double>(12 * nx1 + 34);
  answer.figures.emplace_back("rate_flop_per_s", operations / seconds);
  answer.add_sides("grid", grid.sides);
  answer.chosen = solver.selection.chosen();
  return answer;
}

}  // namespace dryfly::motif
