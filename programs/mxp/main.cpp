// dryfly-mxp: the HPL-MxP benchmark. Built with any MPI's mpicxx; see README.md beside this file.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <sstream>
#include <vector>

#include "../hpl/agree.hpp"
#include "../hpl/binding.hpp"
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

Outcome solve(std::int64_t order, std::int64_t block, const Options& options, Kernel& kernel, hpl::Gpu* gpu,
              MPI_Comm all, Report& report) {
  const hpl::Grid grid(all, options.rows, options.columns, options.row_major);
  Store store(grid, order, block, kernel.precision(), gpu);
  int there = store.allocated() ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &there, 1, MPI_INT, MPI_MIN, all);
  if (there == 0) throw BadInput("N = " + std::to_string(order) + ": the system gives no memory for the matrix");
  System system(grid, options.seed, store);
  Factorisation factors(grid, kernel, store, options.transfers);
  if (!hpl::numerics_skipped()) system.generate();
  hpl::Checkpoint checkpoint(options.checkpoint, all, "mxp", about(order, block, options, kernel));
  const std::int64_t first = checkpoint.restore(factors);
  Outcome outcome;
  outcome.order = order, outcome.block = block;
  if (options.screen) outcome.before = screen(kernel, block, all);
  report.screening("before", outcome.before);
  if (options.warm_up) {
    const Probe probe(kernel, block);
    hpl::warm_up([&] { probe.multiply(); }, grid, block);
  }
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

int run_all(const Options& options, Kernel& kernel, hpl::Gpu* gpu, MPI_Comm where, const std::string& places) {
  int ranks = 1, rank = 0;
  MPI_Comm_size(where, &ranks);
  MPI_Comm_rank(where, &rank);
  std::string error;
  std::unique_ptr<Report> opened;
  try {
    opened = std::make_unique<Report>(rank == 0, options);
  } catch (const BadInput& problem) {
    error = problem.what();
  }
  hpl::agree(error, "a file cannot be written", where);
  Report& report = *opened;
  report.header(kernel, gpu, ranks, places);
  bool passed = true;
  for (const std::int64_t order : options.orders)
    for (const std::int64_t block : options.blocks) {
      const Outcome outcome = solve(order, block, options, kernel, gpu, where, report);
      report.end(outcome);
      passed = passed && outcome.passed;
    }
  report.finish();
  return hpl::numerics_skipped() ? hpl::kNotSolved : passed ? 0 : 1;
}

// Collective. What one rank has packed is multiplied by others, so all have to take the same kernel.
std::unique_ptr<Kernel> kernel_of_all(const KernelChoice& choice) {
  std::string error;
  std::unique_ptr<Kernel> kernel = choose_kernel(choice, &error);
  hpl::agree(kernel != nullptr ? "" : error, "a rank does not have the kernel", MPI_COMM_WORLD);
  const std::string own = kernel->description();
  std::string first = own.substr(0, own.find(" of "));  // without the library, which may differ
  const std::string mine = first;
  first.resize(64);
  MPI_Bcast(first.data(), static_cast<int>(first.size()), MPI_CHAR, 0, MPI_COMM_WORLD);
  hpl::agree(first.c_str() == mine ? "" : "this rank's kernel is " + mine,
             "--kernel auto: the ranks' processors lead to different kernels; accepted is one that all have",
             MPI_COMM_WORLD);
  if (choice.blas.threads > 1 && !kernel->is_threaded())
    throw BadInput("--threads " + std::to_string(choice.blas.threads) + ": " + own +
                   " takes one core for each rank; accepted is 1, or --kernel mkl or sgemm");
  return kernel;
}

// Of the GPU of the process that has most: as Store, Factorisation and System take it.
double need_of_gpu_bytes(std::int64_t order, std::int64_t block, const Options& options, const Kernel& kernel) {
  const hpl::Cyclic rows{order, block, options.rows, 0}, columns{order, block, options.columns, 0};
  const std::int64_t width = std::min(block, order), size = element_bytes(kernel.precision());
  const std::int64_t stride = hpl::column_stride((rows.size() * size + 7) / 8, 8) * 8;  // bytes
  return static_cast<double>(stride * columns.size() + 2 * kernel.left_bytes(rows.size(), width) +
                             kernel.right_bytes(width, columns.size()) + (2 * size + 4) * width * width + 24 * order);
}

// As hpl::Blas::take_memory, for a library's kernel.
void take_memory(Kernel& kernel) {
  constexpr std::int64_t kSide = 128;
  const auto bytes = [](std::int64_t count) { return std::vector<char>(static_cast<std::size_t>(count), 0); };
  std::vector<char> plain = bytes(kSide * kSide * element_bytes(kernel.precision())), c = plain;
  std::vector<double> left(static_cast<std::size_t>(kernel.left_bytes(kSide, kSide)) / 8 + 8, 0.0);
  std::vector<double> right(static_cast<std::size_t>(kernel.right_bytes(kSide, kSide)) / 8 + 8, 0.0);
  const auto aligned = [](std::vector<double>& room) {
    return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(room.data()) + 63) & ~std::uintptr_t{63});
  };
  kernel.pack_left(kSide, kSide, plain.data(), kSide, aligned(left));
  kernel.pack_right(kSide, kSide, plain.data(), kSide, aligned(right));
  kernel.subtract(kSide, kSide, kSide, aligned(left), aligned(right), c.data(), kSide, Zeros::none);
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
  const std::unique_ptr<Kernel> kernel = kernel_of_all(options.kernel);
  const std::unique_ptr<hpl::Gpu> gpu = hpl::open_gpu(options.gpu, options.transfers, MPI_COMM_WORLD);
  if (gpu != nullptr) {
    for (const std::int64_t order : options.orders)
      for (const std::int64_t block : options.blocks)
        hpl::check_gpu_memory(*gpu, order, need_of_gpu_bytes(order, block, options, *kernel), MPI_COMM_WORLD);
    take_memory(*kernel);
  }
  const std::string places = hpl::checked_map(options.check_binding, options.kernel.blas.threads);
  MPI_Comm kept = MPI_COMM_WORLD;
  if (options.spare > 0)
    kept = hpl::without_slowest(screen(*kernel, options.blocks.front(), MPI_COMM_WORLD), options.spare);
  if (kept == MPI_COMM_NULL) return hpl::numerics_skipped() ? hpl::kNotSolved : 0;  // a spare rank
  int status = 2;
  try {
    status = run_all(options, *kernel, gpu.get(), kept, places);
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
