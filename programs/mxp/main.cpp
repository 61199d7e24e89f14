// dryfly-mxp: the HPL-MxP benchmark. Built with any MPI's mpicxx; see README.md beside this file.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "../hpl/host_memory.hpp"
#include "../hpl/work.hpp"
#include "options.hpp"
#include "report.hpp"
#include "screening.hpp"

namespace dryfly::mxp {
namespace {

double since(double begin, MPI_Comm all) {
  double seconds = MPI_Wtime() - begin;
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, all);
  return seconds;
}

std::string about(std::int64_t order, std::int64_t block, const Options& options, const Kernel& kernel) {
  std::ostringstream text;
  text << "N " << order << " NB " << block << " grid " << options.rows << "x" << options.columns << " seed "
       << options.seed << " row-major " << options.row_major << " precision " << static_cast<int>(kernel.precision())
       << " " << kernel.description();
  return text.str();
}

Outcome solve(std::int64_t order, std::int64_t block, const Options& options, Kernel& kernel, MPI_Comm all,
              Report& report) {
  const hpl::Grid grid(all, options.rows, options.columns, options.row_major);
  Store store(grid, order, block, kernel.precision());
  int there = store.allocated() ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &there, 1, MPI_INT, MPI_MIN, all);
  if (there == 0) throw BadInput("N = " + std::to_string(order) + ": the system gives no memory for the matrix");
  System system(grid, options.seed, store);
  Factorisation factors(grid, kernel, store);
  if (!hpl::numerics_skipped()) system.generate();
  hpl::Checkpoint checkpoint(options.checkpoint, all, "mxp", about(order, block, options, kernel));
  const std::int64_t first = checkpoint.restore(factors);
  Outcome outcome;
  outcome.order = order, outcome.block = block;
  if (options.screen) outcome.before = screen(kernel, block, all);
  report.screening("before", outcome.before);
  MPI_Barrier(all);
  report.begin(order, first * block, checkpoint.seconds_before());
  std::vector<hpl::StepTimes> steps;
  const double begin = MPI_Wtime();
  factors.run(system.diagonal(), first, [&](std::int64_t next, std::int64_t columns_done, const hpl::StepTimes& times) {
    steps.push_back(times);
    report.after_step(columns_done, times);
    if (columns_done < order) checkpoint.after_step(next, factors);
  });
  outcome.factor_s = checkpoint.seconds_before() + since(begin, all);
  outcome.solution = refine(system, factors, options.refinement);
  outcome.refine_s = checkpoint.seconds_before() + since(begin, all) - outcome.factor_s;
  if (options.screen) outcome.after = screen(kernel, block, all);
  report.screening("after", outcome.after);
  checkpoint.remove();
  outcome.memory_bytes = store.bytes() + factors.bytes();
  MPI_Allreduce(MPI_IN_PLACE, &outcome.memory_bytes, 1, MPI_DOUBLE, MPI_MAX, all);
  outcome.steps = hpl::summarise(steps, all);
  outcome.solved = !hpl::numerics_skipped();
  if (!outcome.solved) return outcome;
  outcome.residual = system.scaled(difference(system, outcome.solution.x), outcome.solution.x);
  outcome.passed = outcome.residual < options.threshold;  // not for NaN
  return outcome;
}

int run_all(const Options& options, Kernel& kernel, MPI_Comm where) {
  int ranks = 1, rank = 0;
  MPI_Comm_size(where, &ranks);
  MPI_Comm_rank(where, &rank);
  Report report(rank == 0, options);
  report.header(kernel, ranks);
  bool passed = true;
  for (const std::int64_t order : options.orders)
    for (const std::int64_t block : options.blocks) {
      const Outcome outcome = solve(order, block, options, kernel, where, report);
      report.end(outcome);
      passed = passed && outcome.passed;
    }
  report.finish();
  return hpl::numerics_skipped() ? hpl::kNotSolved : passed ? 0 : 1;
}

void say(const BadInput& error) { std::fprintf(stderr, "dryfly-mxp: %s\n", error.what()); }

int run(int count, char** arguments) {
  int ranks = 1, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Options options = parse_command_line(count, arguments);
  if (options.help) {
    if (rank == 0) std::fputs(usage().c_str(), stdout);
    return 0;
  }
  if (options.spare >= ranks)
    throw BadInput("--spare " + std::to_string(options.spare) + ": there are " + std::to_string(ranks) + " ranks");
  complete(options, ranks - options.spare, hpl::usable_bytes(ranks));
  std::string error;
  const std::unique_ptr<Kernel> kernel = choose_kernel(options.kernel, &error);
  if (kernel == nullptr) throw BadInput(error);
  MPI_Comm kept = MPI_COMM_WORLD;
  if (options.spare > 0)
    kept = hpl::without_slowest(screen(*kernel, options.blocks.front(), MPI_COMM_WORLD), options.spare);
  if (kept == MPI_COMM_NULL) return hpl::numerics_skipped() ? hpl::kNotSolved : 0;  // a spare rank
  int status = 2;
  try {
    status = run_all(options, *kernel, kept);
  } catch (const BadInput& problem) {
    int place = 0;
    MPI_Comm_rank(kept, &place);
    if (place == 0) say(problem);
  }
  if (kept != MPI_COMM_WORLD) MPI_Comm_free(&kept);
  return status;
}

}  // namespace
}  // namespace dryfly::mxp

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int status = 2;
  try {
    status = dryfly::mxp::run(count, arguments);
  } catch (const dryfly::mxp::BadInput& error) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) dryfly::mxp::say(error);
  }
  MPI_Finalize();
  return status;
}
