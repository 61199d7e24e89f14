#include "core/motif/workload/hpl/solve.hpp"

#include <algorithm>
#include <bit>

#include "core/motif/collective/collectives.hpp"
#include "core/motif/collective/tree.hpp"

namespace dryfly::motif::hpl {
namespace {

Communicator row_of(const Problem& problem, std::uint32_t row) {
  const std::uint32_t stride = problem.row_major ? 1 : problem.rows;
  return {problem.rank_at(row, 0), stride, problem.columns, 1};
}
Communicator column_of(const Problem& problem, std::uint32_t column) {
  const std::uint32_t stride = problem.row_major ? problem.columns : 1;
  return {problem.rank_at(0, column), stride, problem.rows, 2};
}

constexpr std::uint64_t tree_bytes_most = 2048;

// The collectives as MPICH runs them at these sizes (docs/model/skeleton-hpl.md#solve), of FP64 elements.
Tree binomial(const Communicator& ranks) { return {Shape::binomial, ranks.size(), 2}; }

Task reduce(Rank& me, Communicator ranks, std::uint32_t root, std::uint64_t elements) {
  const Bytes size{elements * element_bytes};
  if (size.count <= tree_bytes_most || elements < std::bit_floor(ranks.size())) {
    return tree_reduce(me, ranks, size, root, binomial(ranks), Bytes{});
  }
  return rabenseifner_reduce(me, ranks, size, Bytes{element_bytes}, root, Halves::of_blocks);
}

}  // namespace

Task back_substitute(Rank& me, Setting& setting, std::uint64_t first, std::uint64_t last) {
  const Problem& problem = setting.problem;
  const Cyclic rows = problem.row_blocks();
  const std::uint32_t my_row = problem.row_of(me.id());
  const std::uint32_t my_column = problem.column_of(me.id());
  me.enter(setting.phases.solve);
  for (std::uint64_t index = last + 1; index-- > first;) {
    const std::uint64_t column = index * problem.block;
    const std::uint64_t width = std::min(problem.block, problem.order - column);
    const std::uint32_t owner_row = rows.owner(column);
    const std::uint32_t owner_column = problem.column_blocks().owner(column);
    if (my_row == owner_row) {
      co_await reduce(me, row_of(problem, my_row), owner_column, width);
      if (my_column == owner_column) co_await me.compute(setting.rates.triangular_solve(width, 1, Precision::fp64));
    }
    if (my_column != owner_column) continue;
    const Communicator column_ranks = column_of(problem, my_column);
    co_await tree_bcast(me, column_ranks, Bytes{width * element_bytes}, owner_row, binomial(column_ranks), Bytes{});
    co_await me.compute(setting.rates.product(rows.below(column, my_row), 1, width, Precision::fp64));
  }
  me.enter(0);
}

// The processes of each row have all of it.
Task gather_solution(Rank& me, Setting& setting) {
  const Problem& problem = setting.problem;
  me.enter(setting.phases.solve);
  if (problem.columns > 1) {
    co_await rabenseifner_allreduce(me, row_of(problem, problem.row_of(me.id())), Bytes{problem.order * element_bytes},
                                    Bytes{element_bytes}, Halves::of_blocks);
  }
  me.enter(0);
}

}  // namespace dryfly::motif::hpl
