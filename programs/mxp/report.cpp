#include "report.hpp"

#include "../hpl/output.hpp"
#include "../hpl/work.hpp"

namespace dryfly::mxp {
namespace {

using hpl::number;
using hpl::opened;
using hpl::operations;
using hpl::Phase;
using hpl::quoted;

constexpr const char* kLine = "--------------------------------------------------------------------------------\n";
// Rows are not exchanged here; what is called trsm in HPL are products with inverses.
constexpr hpl::NamedPhase kPhasesShown[] = {{Phase::panel, "diagonal"},  {Phase::broadcast, "broadcast"},
                                            {Phase::trsm, "panels"},     {Phase::gemm, "gemm"},
                                            {Phase::to_host, "to_host"}, {Phase::to_gpu, "to_gpu"}};
constexpr std::size_t kHostPhasesShown = 4;

double of(const hpl::StepTimes& times, Phase phase) { return times.phase[static_cast<std::size_t>(phase)]; }

}  // namespace

Report::Report(bool is_first, const Options& options)
    : options_(options),
      is_first_(is_first),
      phases_(std::span(kPhasesShown).first(options.gpu ? std::size(kPhasesShown) : kHostPhasesShown)) {
  if (!is_first) return;
  json_ = opened("--json", options.json);
  solution_ = opened("--solution", options.solution);
}

Report::~Report() {
  if (json_ != nullptr) std::fclose(json_);
  if (solution_ != nullptr) std::fclose(solution_);
}

void Report::header(const Kernel& kernel, const hpl::Gpu* gpu, int ranks, const std::string& places) {
  if (!is_first_) return;
  std::printf("dryfly-mxp: A x = b as HPL-MxP asks, factors in %s, on %d rank%s (grid %dx%d)\n",
              precision_name(kernel.precision()), ranks, ranks == 1 ? "" : "s", options_.rows, options_.columns);
  std::printf("kernel: %s\n", kernel.description().c_str());
  if (hpl::kernels_are_modelled())
    std::printf("times: of dryfly's model of the machine%s\n", hpl::numerics_skipped() ? "; NUMERICS SKIPPED" : "");
  if (gpu != nullptr)
    std::printf("matrix: in the memory of GPUs (%s), a rank each; MPI moves %s\n", gpu->runtime().c_str(),
                options_.transfers == hpl::Transfers::device ? "that memory" : "copies in pinned memory of the host");
  std::fputs(places.c_str(), stdout);
  std::printf("refinement: %s, %d steps at most; threshold %.1f\n",
              options_.refinement.kind == Refinement::classic ? "classic" : "GMRES", options_.refinement.steps_most,
              options_.threshold);
  std::fflush(stdout);
  if (json_ != nullptr)
    std::fprintf(json_,
                 "{\"program\": \"dryfly-mxp\", \"ranks\": %d, \"precision\": \"%s\", \"kernel\": %s,\n \"runs\": [",
                 ranks,
                 kernel.precision() == Precision::bf16   ? "bf16"
                 : kernel.precision() == Precision::fp16 ? "fp16"
                                                         : "fp32",
                 quoted(kernel.description()).c_str());
}

void Report::screening(const char* when, const hpl::Screening& screening) {
  if (is_first_) hpl::print_screening(stdout, when, screening);
}

void Report::begin(std::int64_t order, std::int64_t columns_done, double seconds_before) {
  order_ = static_cast<double>(order);
  step_ = lines_ = 0;
  columns_before_ = static_cast<double>(columns_done);
  since_line_ = {};
  line_at_ = MPI_Wtime();
  begun_ = line_at_ - seconds_before;
}

void Report::after_step(std::int64_t columns_done, const hpl::StepTimes& times) {
  ++step_;
  for (std::size_t i = 0; i < hpl::kPhases; ++i) since_line_.phase[i] += times.phase[i];
  if (!is_first_ || options_.progress == 0) return;
  // Lines at equal parts of the operations, so that they come in equal times.
  const double done = static_cast<double>(columns_done), now = MPI_Wtime();
  const auto until = [&](double columns) { return operations(order_) - operations(order_ - columns); };
  const double part = until(done) / operations(order_);
  if (options_.progress > 0 && done < order_ && part * options_.progress < lines_ + 1) return;
  if (lines_ == 0) {
    std::printf("%6s %8s %10s %9s %9s  ", "step", "columns", "time", "GF/s now", "so far");
    for (const auto& [phase, name] : phases_) std::printf(" %9s", name);
    std::printf("\n");
  }
  lines_ = std::max(lines_ + 1, static_cast<int>(part * options_.progress));
  std::printf("%6d %7.2f%% %10.3f %9.2f %9.2f  ", step_, 100 * done / order_, now - begun_,
              (until(done) - until(columns_before_)) / (now - line_at_) / 1e9, until(done) / (now - begun_) / 1e9);
  for (const auto& [phase, name] : phases_) std::printf(" %9.4f", of(since_line_, phase));
  std::printf("\n");
  std::fflush(stdout);
  columns_before_ = done;
  line_at_ = now;
  since_line_ = {};
}

void Report::end(const Outcome& outcome) {
  ++runs_;
  passed_ += outcome.passed ? 1 : 0;
  if (!is_first_) return;
  const double order = static_cast<double>(outcome.order), rate = operations(order) / outcome.seconds() / 1e9;
  std::printf("%sT/V                N    NB     P     Q               Time                 Gflops\n%s", kLine, kLine);
  std::printf("%-8s%12lld %5lld %5d %5d %18.2f     %18.4e\n", "MXP", static_cast<long long>(outcome.order),
              static_cast<long long>(outcome.block), options_.rows, options_.columns, outcome.seconds(), rate);
  std::printf("factors %.3f s (%.2f GF/s):", outcome.factor_s,
              2.0 / 3.0 * order * order * order / outcome.factor_s / 1e9);
  for (const auto& [phase, name] : phases_) std::printf(" %s %.3f", name, of(outcome.steps.total, phase));
  std::printf(" (mean of all ranks)\nrefinement %.3f s (%.1f %% of the time), %d steps, residuals", outcome.refine_s,
              100 * outcome.refine_s / outcome.seconds(), outcome.solution.steps);
  for (const double residual : outcome.solution.residuals) std::printf(" %.3g", residual);
  std::printf("\nmemory of a rank: %.1f MB, of which the matrix %.1f MB\n", outcome.memory_bytes / 1e6,
              static_cast<double>(element_bytes(options_.kernel.precision)) * order * order / options_.rows /
                  options_.columns / 1e6);
  if (!outcome.solved)
    std::puts("NOT SOLVED: the numerics were skipped, so the time is a model's and there is no solution to test");
  else
    std::printf("||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= %18.8e ...... %s\n", outcome.residual,
                outcome.passed ? "PASSED" : "FAILED");
  std::fflush(stdout);
  if (solution_ != nullptr)
    std::fwrite(outcome.solution.x.data(), sizeof(double), outcome.solution.x.size(), solution_);
  if (json_ != nullptr) write_json(outcome);
}

void Report::write_json(const Outcome& outcome) {
  const double rate = operations(static_cast<double>(outcome.order)) / outcome.seconds() / 1e9;
  std::fprintf(json_, "%s\n  {\"order\": %lld, \"block\": %lld, \"grid\": [%d, %d],\n", runs_ == 1 ? "" : ",",
               static_cast<long long>(outcome.order), static_cast<long long>(outcome.block), options_.rows,
               options_.columns);
  std::fprintf(json_, "   \"time_s\": %s, \"factor_s\": %s, \"refine_s\": %s, \"gflops\": %s,\n",
               number(outcome.seconds()).c_str(), number(outcome.factor_s).c_str(), number(outcome.refine_s).c_str(),
               number(rate).c_str());
  std::fprintf(json_, "   \"refinement\": \"%s\", \"refinement_steps\": %d, \"residuals\": [",
               options_.refinement.kind == Refinement::classic ? "classic" : "gmres", outcome.solution.steps);
  for (std::size_t i = 0; i < outcome.solution.residuals.size(); ++i)
    std::fprintf(json_, "%s%s", i == 0 ? "" : ", ", number(outcome.solution.residuals[i]).c_str());
  std::fprintf(
      json_,
      "],\n   \"memory_bytes_per_rank\": %s, \"residual\": %s, \"threshold\": %s, \"solved\": %s, \"passed\": %s,\n"
      "   \"phases_mean_s\": {",
      number(outcome.memory_bytes).c_str(), outcome.solved ? number(outcome.residual).c_str() : "null",
      number(options_.threshold).c_str(), outcome.solved ? "true" : "false", outcome.passed ? "true" : "false");
  const char* separator = "";
  for (const auto& [phase, name] : phases_) {
    std::fprintf(json_, "%s\"%s\": %s", separator, name, number(of(outcome.steps.total, phase)).c_str());
    separator = ", ";
  }
  const auto rate_of = [](const hpl::Screening& measured) {
    return measured.gemm_gflops.empty() ? std::string("null") : number(hpl::mean(measured.gemm_gflops));
  };
  std::fprintf(json_, "},\n   \"screening_gflops\": [%s, %s],\n", rate_of(outcome.before).c_str(),
               rate_of(outcome.after).c_str());
  hpl::write_steps(json_, "steps_max_s", outcome.steps.most, phases_);
  std::fputs(",\n", json_);
  hpl::write_steps(json_, "steps_mean_s", outcome.steps.mean, phases_);
  std::fputs("}", json_);
}

void Report::finish() {
  if (json_ != nullptr) std::fprintf(json_, "],\n \"passed\": %d, \"failed\": %d}\n", passed_, runs_ - passed_);
  if (is_first_) std::printf("%s%d of %d runs passed the test\n", kLine, passed_, runs_);
}

}  // namespace dryfly::mxp
