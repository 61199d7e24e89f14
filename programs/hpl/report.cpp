#include "report.hpp"

#include <algorithm>
#include <cmath>

#include "output.hpp"
#include "work.hpp"

namespace dryfly::hpl {
namespace {

constexpr const char* kDoubleLine =
    "================================================================================\n";
constexpr const char* kSingleLine =
    "--------------------------------------------------------------------------------\n";

constexpr NamedPhase kAllPhases[] = {{Phase::panel, kPhaseNames[0]}, {Phase::broadcast, kPhaseNames[1]},
                                     {Phase::swap, kPhaseNames[2]},  {Phase::trsm, kPhaseNames[3]},
                                     {Phase::gemm, kPhaseNames[4]},  {Phase::to_host, kPhaseNames[5]},
                                     {Phase::to_gpu, kPhaseNames[6]}};
constexpr const char* kColumnNames[] = {"panel", "bcast", "swap", "trsm", "gemm", "to_host", "to_gpu"};

char letter(Variant variant) { return "LCR"[static_cast<int>(variant)]; }

std::string code(const Case& each, bool row_major) {
  char text[64];
  const PanelOptions& panel = each.factor.panel;
  std::snprintf(text, sizeof text, "W%c%d%d%c%d%c%d", row_major ? 'R' : 'C', each.factor.depth,
                static_cast<int>(each.factor.broadcast), letter(panel.recursion), panel.pieces, letter(panel.leaf),
                panel.leaf_columns);
  return text;
}

// Operations of the part of the factorisation that ends with `columns` finished.
double operations_until(double order, double columns) {
  const double left = order - columns;
  return operations(order) - operations(left);
}

// The step from which on `phase` takes longer than the products, to the end; the number of steps if there is none.
std::size_t crossover(const std::vector<StepTimes>& steps, const std::vector<Phase>& phases) {
  std::size_t step = steps.size();
  for (; step > 0; --step) {
    const StepTimes& times = steps[step - 1];
    double other = 0;
    for (const Phase phase : phases) other += times.phase[static_cast<std::size_t>(phase)];
    if (other <= times.phase[static_cast<std::size_t>(Phase::gemm)]) break;
  }
  return step;
}

}  // namespace

Report::Report(bool is_first, const Options& options)
    : row_major_(options.row_major), phases_(options.gpu ? kPhases : kHostPhases), lines_asked_(options.progress) {
  if (!is_first) return;
  out_ = options.output.empty() ? stdout : options.output == "-" ? stderr : opened("output file", options.output);
  owns_out_ = out_ != stdout && out_ != stderr;
  json_ = opened("--json", options.json);
  solution_ = opened("--solution", options.solution);
}

Report::~Report() {
  if (owns_out_ && out_ != nullptr) std::fclose(out_);
  if (json_ != nullptr) std::fclose(json_);
  if (solution_ != nullptr) std::fclose(solution_);
}

void Report::solution(const std::vector<double>& x) {
  if (solution_ != nullptr) std::fwrite(x.data(), sizeof(double), x.size(), solution_);
}

void Report::header(const Options& options, const Blas& blas, const Gpu* gpu, int ranks, const std::string& chosen,
                    const std::string& places) {
  if (out_ == nullptr) return;
  std::fputs(kDoubleLine, out_);
  std::fprintf(out_, "dryfly-hpl: A x = b in FP64 on %d rank%s; results in the lines of HPL 2.3\n", ranks,
               ranks == 1 ? "" : "s");
  std::fprintf(out_, "BLAS: %s\n", blas.description().c_str());
  if (kernels_are_modelled())
    std::fprintf(out_, "times: of dryfly's model of the machine%s\n", numerics_skipped() ? "; NUMERICS SKIPPED" : "");
  if (gpu != nullptr)
    std::fprintf(out_, "matrix: in the memory of GPUs (%s), a rank each; MPI moves %s\n", gpu->runtime().c_str(),
                 options.transfers == Transfers::device ? "that memory" : "copies in pinned memory of the host");
  std::fputs(places.c_str(), out_);
  if (!chosen.empty()) std::fprintf(out_, "chosen: %s\n", chosen.c_str());
  std::fprintf(out_, "swap %s, L1 %s, U %s, equilibration %s, alignment %lld doubles, threshold %.1f\n",
               options.swap.kind == SwapKind::binary   ? "binary exchange"
               : options.swap.kind == SwapKind::spread ? "spread-roll"
                                                       : "mix",
               options.transposed_top ? "transposed" : "plain", options.swap.transposed_u ? "transposed" : "plain",
               options.swap.equal_pieces ? "yes" : "no", static_cast<long long>(options.alignment), options.threshold);
  std::fputs(kDoubleLine, out_);
  std::fflush(out_);
  if (json_ != nullptr)
    std::fprintf(json_, "{\"program\": \"dryfly-hpl\", \"ranks\": %d, \"blas\": %s, \"memory\": \"%s\",\n \"runs\": [",
                 ranks, quoted(blas.description()).c_str(), gpu == nullptr ? "host" : "gpu");
}

// MPI answers with the NIC that it has taken, which is another one where it has fewer.
void Report::nics(const Grid& grid, const NicHints& asked) {
  if (out_ == nullptr) return;
  const auto line = [&](const char* what, const std::vector<int>& wanted, const std::string& taken) {
    if (!wanted.empty())
      std::fprintf(out_, "NIC for %s: asked for %d on the first rank, MPI %s%s\n", what, wanted.front(),
                   taken.empty() ? "does not heed it" : "takes ", taken.c_str());
  };
  line("broadcasts", asked.row, grid.row_nic());
  line("the exchange of rows", asked.column, grid.column_nic());
}

void Report::begin(const Case& each, std::int64_t columns_done, double seconds_before) {
  order_ = each.order;
  columns_before_ = columns_done;
  step_ = columns_done / each.block;
  lines_ = 0;
  since_line_ = {};
  line_at_ = MPI_Wtime();
  begun_ = line_at_ - seconds_before;
}

void Report::screening(const char* when, const Screening& screening) {
  if (out_ != nullptr) print_screening(out_, when, screening);
}

void Report::line_of_names() {
  std::fprintf(out_, "%6s %8s %10s %9s %9s  ", "step", "columns", "time", "GF/s now", "so far");
  for (std::size_t i = 0; i < phases_; ++i) std::fprintf(out_, " %8s", kColumnNames[i]);
  std::fputc('\n', out_);
}

void Report::after_step(std::int64_t columns_done, const StepTimes& times) {
  ++step_;
  for (std::size_t i = 0; i < kPhases; ++i) since_line_.phase[i] += times.phase[i];
  if (out_ == nullptr || lines_asked_ == 0) return;
  // Lines at equal parts of the operations, so that they come in equal times.
  const double now = MPI_Wtime(), order = static_cast<double>(order_), done = static_cast<double>(columns_done);
  const double part = operations_until(order, done) / operations(order);
  if (lines_asked_ > 0 && columns_done < order_ && part * lines_asked_ < lines_ + 1) return;
  if (lines_++ == 0) line_of_names();
  const double before = static_cast<double>(columns_before_);
  std::fprintf(out_, "%6lld %7.2f%% %10.3f %9.2f %9.2f  ", static_cast<long long>(step_), 100 * done / order,
               now - begun_, (operations_until(order, done) - operations_until(order, before)) / (now - line_at_) / 1e9,
               operations_until(order, done) / (now - begun_) / 1e9);
  for (std::size_t i = 0; i < phases_; ++i) std::fprintf(out_, " %8.4f", since_line_.phase[i]);
  std::fputc('\n', out_);
  std::fflush(out_);
  lines_ = static_cast<int>(part * std::max(lines_asked_, 0)) + (lines_asked_ < 0 ? lines_ : 0);
  if (lines_ == 0) lines_ = 1;
  columns_before_ = columns_done;
  line_at_ = now;
  since_line_ = {};
}

void Report::end(const Case& each, const Outcome& outcome, double threshold) {
  if (out_ == nullptr) return;
  const double rate = operations(static_cast<double>(each.order)) / outcome.seconds / 1e9;
  const std::string name = code(each, row_major_);
  const Residual& residual = outcome.residual;
  ++runs_;
  if (outcome.tested) ++(outcome.passed ? passed_ : failed_);
  std::fputs(kDoubleLine, out_);
  std::fputs("T/V                N    NB     P     Q               Time                 Gflops\n", out_);
  std::fputs(kSingleLine, out_);
  std::fprintf(out_, "%-8s%12lld %5lld %5d %5d %18.2f     %18.4e\n", name.c_str(), static_cast<long long>(each.order),
               static_cast<long long>(each.block), each.rows, each.columns, outcome.seconds, rate);
  std::fprintf(out_, "%-12s", "phases (s)");
  for (std::size_t i = 0; i < phases_; ++i) std::fprintf(out_, " %10s", kPhaseNames[i]);
  std::fprintf(out_, " %10s\n%-12s", "rest", "mean of all");
  double rest = outcome.seconds;
  for (std::size_t i = 0; i < phases_; ++i) {
    std::fprintf(out_, " %10.3f", outcome.steps.total.phase[i]);
    rest -= outcome.steps.total.phase[i];
  }
  std::fprintf(out_, " %10.3f\n", rest);
  // Of a GPU's products a process sees what it waits for.
  const bool sees_products = phases_ == kHostPhases;
  // The tail that communication bounds, as the cost model max(gemm, panel + broadcast, swap) of a step has it.
  const auto last_bound = [&](const std::vector<Phase>& phases) {
    return 100.0 * static_cast<double>(crossover(outcome.steps.mean, phases)) /
           static_cast<double>(outcome.steps.most.size());
  };
  if (sees_products)
    std::fprintf(out_, "gemm takes longest until %.1f%% of the steps against swap, %.1f%% against panel + broadcast\n",
                 last_bound({Phase::swap}), last_bound({Phase::panel, Phase::broadcast}));
  std::fprintf(out_, "memory of a rank: %.1f MB, of which the matrix 8 N^2/(P Q) = %.1f MB\n",
               outcome.memory_bytes / 1e6,
               8e-6 * static_cast<double>(each.order) * static_cast<double>(each.order) / each.rows / each.columns);
  std::fputs(kSingleLine, out_);
  test_of(outcome);
  std::fflush(out_);
  if (json_ == nullptr) return;
  std::fprintf(json_, "%s\n  {\"code\": %s, \"order\": %lld, \"block\": %lld, \"grid\": [%d, %d],\n",
               runs_ == 1 ? "" : ",", quoted(name).c_str(), static_cast<long long>(each.order),
               static_cast<long long>(each.block), each.rows, each.columns);
  std::fprintf(json_, "   \"time_s\": %s, \"gflops\": %s, \"memory_bytes_per_rank\": %s,\n",
               number(outcome.seconds).c_str(), number(rate).c_str(), number(outcome.memory_bytes).c_str());
  std::fprintf(json_, "   \"residual\": %s, \"threshold\": %s, \"solved\": %s, \"passed\": %s,\n",
               outcome.tested ? number(residual.scaled).c_str() : "null", number(threshold).c_str(),
               outcome.solved ? "true" : "false",
               outcome.solved && !outcome.tested ? "null"
               : outcome.passed                  ? "true"
                                                 : "false");
  std::fprintf(json_,
               "   \"norms\": {\"difference\": %s, \"a_infinity\": %s, \"a_one\": %s, \"x_infinity\": %s, "
               "\"b_infinity\": %s},\n   \"phases_mean_s\": {",
               number(residual.difference).c_str(), number(residual.a_infinity).c_str(), number(residual.a_one).c_str(),
               number(residual.x_infinity).c_str(), number(residual.b_infinity).c_str());
  for (std::size_t i = 0; i < phases_; ++i)
    std::fprintf(json_, "%s\"%s\": %s", i == 0 ? "" : ", ", kPhaseNames[i],
                 number(outcome.steps.total.phase[i]).c_str());
  std::fprintf(json_, "},\n   \"screening_gflops\": [%s, %s],\n",
               outcome.before.gemm_gflops.empty() ? "null" : number(mean(outcome.before.gemm_gflops)).c_str(),
               outcome.after.gemm_gflops.empty() ? "null" : number(mean(outcome.after.gemm_gflops)).c_str());
  const std::span<const NamedPhase> phases = std::span(kAllPhases).first(phases_);
  write_steps(json_, "steps_max_s", outcome.steps.most, phases);
  std::fputs(",\n", json_);
  write_steps(json_, "steps_mean_s", outcome.steps.mean, phases);
  std::fputs("}", json_);
}

void Report::test_of(const Outcome& outcome) {
  if (!outcome.solved) {
    std::fputs("NOT SOLVED: the numerics were skipped, so the time is a model's and there is no solution to test\n",
               out_);
    return;
  }
  if (!outcome.tested) {
    std::fputs("NOT TESTED: the threshold is not above 0\n", out_);
    return;
  }
  const Residual& residual = outcome.residual;
  std::fprintf(out_, "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= %18.8e ...... %s\n", residual.scaled,
               outcome.passed ? "PASSED" : "FAILED");
  if (!outcome.passed) {
    std::fprintf(out_, "||Ax-b||_oo  . . . . . . . . . . . . . . . . . = %18.6f\n", residual.difference);
    std::fprintf(out_, "||A||_oo . . . . . . . . . . . . . . . . . . . = %18.6f\n", residual.a_infinity);
    std::fprintf(out_, "||A||_1  . . . . . . . . . . . . . . . . . . . = %18.6f\n", residual.a_one);
    std::fprintf(out_, "||x||_oo . . . . . . . . . . . . . . . . . . . = %18.6f\n", residual.x_infinity);
    std::fprintf(out_, "||b||_oo . . . . . . . . . . . . . . . . . . . = %18.6f\n", residual.b_infinity);
  }
}

void Report::finish(int skipped) {
  if (json_ != nullptr) std::fprintf(json_, "],\n \"passed\": %d, \"failed\": %d}\n", passed_, failed_);
  if (out_ == nullptr) return;
  std::fputs(kDoubleLine, out_);
  std::fprintf(out_, "\nFinished %6d tests with the following results:\n", runs_ + skipped);
  const int untested = runs_ - passed_ - failed_;
  if (untested == 0 || numerics_skipped()) {
    std::fprintf(out_, "         %6d tests completed and passed residual checks,\n", passed_);
    std::fprintf(out_, "         %6d tests completed and failed residual checks,\n", failed_);
  } else {
    std::fprintf(out_, "         %6d tests completed without checking,\n", untested);
  }
  std::fprintf(out_, "         %6d tests skipped because of illegal input values.\n", skipped);
  if (numerics_skipped())
    std::fprintf(out_, "         %6d tests not solved, because the numerics were skipped.\n", untested);
  std::fprintf(out_, "%s\nEnd of Tests.\n%s", kSingleLine, kDoubleLine);
  std::fflush(out_);
}

}  // namespace dryfly::hpl
