// dryfly-hpl: the High-Performance Linpack benchmark. Built with any MPI's mpicxx; see README.md beside this file.
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>

#include "agree.hpp"
#include "binding.hpp"
#include "factor.hpp"
#include "gpu.hpp"
#include "host_memory.hpp"
#include "nics.hpp"
#include "options.hpp"
#include "report.hpp"
#include "solve.hpp"
#include "work.hpp"

namespace dryfly::hpl {
namespace {

std::string gigabytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g GB", bytes / 1e9);
  return text;
}

// The matrix, and for each rank its panels and the rows that it exchanges.
double need_bytes(const Case& each) {
  const double order = static_cast<double>(each.order);
  const double width = static_cast<double>(std::min(each.block, each.order));
  const double panels = each.columns > 1 ? (each.factor.depth + 1) * width * order / each.rows : 0;
  const double rows = each.rows > 1 ? 3 * width * order / each.columns : 0;
  return 8 * (order * (order + 1) + (panels + rows) * each.rows * each.columns);
}

// Of the GPU of the process that has most: as Matrix, Panel and RowExchange take it.
double need_of_gpu_bytes(const Case& each) {
  const Cyclic rows{each.order, each.block, each.rows, 0}, columns{each.order + 1, each.block, each.columns, 0};
  const std::int64_t width = std::min(each.block, each.order);
  const std::int64_t panel = width * (width + 1 + column_stride(rows.size(), 8));
  const std::int64_t rows_exchanged = each.rows > 1 ? 6 * width * columns_of_part(columns, each.factor.split) : 0;
  return 8.0 * static_cast<double>(column_stride(rows.size(), 8) * columns.size() + (each.factor.depth + 1) * panel +
                                   rows_exchanged);
}

void check_memory(const std::vector<Case>& cases, double usable) {
  for (const Case& each : cases)
    if (need_bytes(each) > usable)
      throw BadInput("N = " + std::to_string(each.order) + ": the matrix and its panels need " +
                     gigabytes(need_bytes(each)) + ", and " + gigabytes(usable) + " of memory are free");
}

std::vector<Case> combinations(const Options& options) {
  std::vector<Case> cases;
  Case each;
  FactorOptions& factor = each.factor;
  factor.swap = options.swap;
  factor.split = options.split;
  factor.transposed_top = options.transposed_top;
  factor.transfers = options.transfers;
  factor.panel.search = options.search;
  for (const auto& [rows, columns] : options.grids)
    for (const std::int64_t order : options.orders)
      for (const std::int64_t block : options.blocks)
        for (const int depth : options.depths)
          for (const Broadcast broadcast : options.broadcasts)
            for (const Variant recursion : options.recursion)
              for (const Variant leaf : options.leaf)
                for (const int leaf_columns : options.leaf_columns)
                  for (const int pieces : options.pieces) {
                    each.order = order, each.block = block, each.rows = rows, each.columns = columns;
                    factor.depth = depth, factor.broadcast = broadcast;
                    factor.panel.recursion = recursion, factor.panel.leaf = leaf;
                    factor.panel.leaf_columns = leaf_columns, factor.panel.pieces = pieces;
                    cases.push_back(each);
                  }
  return cases;
}

// HPL.dat is read by the first rank, because the others may see another file system.
std::string read_everywhere(const std::string& name, bool must_exist, bool is_first) {
  std::string text;
  long long length = -1;
  if (is_first) {
    std::ifstream file(name);
    if (file) {
      std::stringstream content;
      content << file.rdbuf();
      text = content.str();
      length = static_cast<long long>(text.size());
    }
  }
  MPI_Bcast(&length, 1, MPI_LONG_LONG, 0, MPI_COMM_WORLD);
  if (length < 0) {
    if (must_exist) throw BadInput("--dat " + name + ": the file cannot be read");
    return "";
  }
  text.resize(static_cast<std::size_t>(length));
  MPI_Bcast(text.data(), static_cast<int>(length), MPI_CHAR, 0, MPI_COMM_WORLD);
  return text;
}

std::string about(const Case& each, const Options& options, const Blas& blas) {
  const FactorOptions& factor = each.factor;
  std::ostringstream text;
  text << "N " << each.order << " NB " << each.block << " grid " << each.rows << "x" << each.columns << " seed "
       << options.seed << " depth " << factor.depth << " panel " << static_cast<int>(factor.panel.recursion)
       << factor.panel.pieces << static_cast<int>(factor.panel.leaf) << factor.panel.leaf_columns << " form "
       << factor.transposed_top << factor.swap.transposed_u << factor.split << options.row_major << options.alignment
       << " " << blas.description();
  return text.str();
}

Outcome solve(const Case& each, const Options& options, const Blas& blas, Gpu* gpu, MPI_Comm all, Report& report) {
  const Grid grid(all, each.rows, each.columns, options.row_major, options.nics);
  report.nics(grid, options.nics);
  const std::string no_memory = "N = " + std::to_string(each.order) + ": the system gives no memory for the matrix";
  Matrix matrix(grid, each.order, each.block, options.alignment, gpu);
  agree(matrix.allocated() ? "" : no_memory, no_memory.c_str(), all);
  const Generator generator(options.seed);
  Factorisation factorisation(grid, blas, each.factor, matrix);
  agree(factorisation.allocated() ? "" : no_memory, no_memory.c_str(), all);
  Checkpoint checkpoint(options.checkpoint, all, "hpl", about(each, options, blas));
  const std::int64_t first_step = checkpoint.restore(factorisation);
  if (first_step == 0 && !numerics_skipped()) matrix.generate(generator);
  Outcome outcome;
  if (options.screen) outcome.before = screen(blas, each.block, all);
  report.screening("before", outcome.before);
  if (options.warm_up) warm_up([&] { multiply_once(blas, each.block); }, grid, each.block);
  MPI_Barrier(all);
  report.begin(each, first_step * each.block, checkpoint.seconds_before());
  std::vector<StepTimes> steps;
  const double begin = MPI_Wtime();
  factorisation.run(first_step, [&](std::int64_t next_step, std::int64_t columns_done, const StepTimes& times) {
    steps.push_back(times);
    report.after_step(columns_done, times);
    if (columns_done < each.order) checkpoint.after_step(next_step, factorisation);
  });
  const std::vector<double> x = back_substitute(grid, blas, matrix);
  outcome.seconds = checkpoint.seconds_before() + MPI_Wtime() - begin;
  MPI_Allreduce(MPI_IN_PLACE, &outcome.seconds, 1, MPI_DOUBLE, MPI_MAX, all);
  if (options.screen) outcome.after = screen(blas, each.block, all);
  report.screening("after", outcome.after);
  outcome.memory_bytes = 8.0 * static_cast<double>(matrix.elements() + factorisation.elements());
  MPI_Allreduce(MPI_IN_PLACE, &outcome.memory_bytes, 1, MPI_DOUBLE, MPI_MAX, all);
  outcome.steps = summarise(steps, all);
  report.solution(x);
  checkpoint.remove();
  outcome.solved = !numerics_skipped();
  outcome.tested = outcome.solved && options.threshold > 0;
  if (!outcome.tested) return outcome;
  outcome.residual = check(grid, matrix, generator, x);
  outcome.passed = outcome.residual.passed(options.threshold);
  return outcome;
}

int run_all(const std::vector<Case>& cases, const Options& options, const Blas& blas, Gpu* gpu, MPI_Comm where,
            const std::string& chosen, const std::string& places) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(where, &rank);
  MPI_Comm_size(where, &ranks);
  std::string error;
  std::unique_ptr<Report> report;
  try {
    report = std::make_unique<Report>(rank == 0, options);
  } catch (const BadInput& problem) {
    error = problem.what();
  }
  agree(error, "a file cannot be written", where);
  report->header(options, blas, gpu, ranks, chosen, places);
  bool passed = true;
  for (const Case& each : cases) {
    const Outcome outcome = solve(each, options, blas, gpu, where, *report);
    report->end(each, outcome, options.threshold);
    passed = passed && (outcome.passed || !outcome.tested);
  }
  report->finish(0);
  return numerics_skipped() ? kNotSolved : passed ? 0 : 1;
}

void say(const BadInput& error) { std::fprintf(stderr, "dryfly-hpl: %s\n", error.what()); }

int run(int count, char** arguments) {
  int ranks = 1, rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const bool is_first = rank == 0;
  Options options = parse_command_line(count, arguments);
  if (options.help) {
    if (is_first) std::fputs(usage().c_str(), stdout);
    return 0;
  }
  if (!options.data_file.empty()) refuse_flags_beside_data_file("--dat " + options.data_file, options);
  std::string chosen;
  const std::string data_file = options.data_file.empty() ? "HPL.dat" : options.data_file;
  if (!options.data_file.empty() || options.orders.empty()) {
    const std::string text = read_everywhere(data_file, !options.data_file.empty(), is_first);
    if (!text.empty() || !options.data_file.empty()) {
      if (options.data_file.empty()) refuse_flags_beside_data_file(data_file, options);
      parse_data_file(data_file, text, options);
      chosen = "what " + data_file + " says";
    }
  }
  check_nics(options.nics);
  const double usable = usable_bytes(ranks);
  const bool order_chosen = options.orders.empty();
  if (options.spare >= ranks)
    throw BadInput("--spare " + std::to_string(options.spare) + ": there are " + std::to_string(ranks) + " ranks");
  complete(options, ranks - options.spare, usable);
  const std::vector<Case> cases = combinations(options);
  check_memory(cases, usable);
  if (order_chosen)
    chosen = "N = " + std::to_string(options.orders.front()) + " on a grid of " +
             std::to_string(options.grids.front().first) + "x" + std::to_string(options.grids.front().second) +
             ", for which " + gigabytes(usable) + " of memory are free";
  std::string error;
  const Blas blas = Blas::load(options.blas, &error);
  agree(error, "a rank cannot load the BLAS", MPI_COMM_WORLD);
  const std::unique_ptr<Gpu> gpu = open_gpu(options.gpu, options.transfers, MPI_COMM_WORLD);
  if (gpu != nullptr) {
    for (const Case& each : cases) check_gpu_memory(*gpu, each.order, need_of_gpu_bytes(each), MPI_COMM_WORLD);
    blas.take_memory();
  }
  const std::string places = checked_map(options.check_binding, options.blas.threads);
  MPI_Comm kept = MPI_COMM_WORLD;
  if (options.spare > 0) kept = without_slowest(screen(blas, options.blocks.front(), MPI_COMM_WORLD), options.spare);
  if (kept == MPI_COMM_NULL) return numerics_skipped() ? kNotSolved : 0;  // a spare rank
  int status = 2;
  try {
    status = run_all(cases, options, blas, gpu.get(), kept, chosen, places);
  } catch (const BadInput& problem) {
    int place = 0;
    MPI_Comm_rank(kept, &place);
    if (place == 0) say(problem);
  }
  if (kept != MPI_COMM_WORLD) MPI_Comm_free(&kept);
  return status;
}

}  // namespace
}  // namespace dryfly::hpl

int main(int count, char** arguments) {
  dryfly::hpl::ask_for_nics(count, arguments);
  MPI_Init(&count, &arguments);
  int status = 2;
  try {
    status = dryfly::hpl::run(count, arguments);
  } catch (const dryfly::hpl::BadInput& error) {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) dryfly::hpl::say(error);
  }
  MPI_Finalize();
  return status;
}
