// What is printed, in the lines that tools for HPL read (WR..., the residual, PASSED or FAILED), and the JSON file.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "options.hpp"
#include "phases.hpp"
#include "screen.hpp"
#include "solve.hpp"

namespace dryfly::hpl {

// One combination of the options.
struct Case {
  std::int64_t order = 0, block = 0;
  int rows = 1, columns = 1;
  FactorOptions factor;
};

struct Outcome {
  double seconds = 0;
  double memory_bytes = 0;  // of one process, the most
  Residual residual;
  bool solved = true;   // false: the numerics were skipped
  bool tested = false;  // whether there is a residual
  bool passed = false;
  StepSummary steps;
  Screening before, after;  // empty unless asked for
};

// On the first process only; elsewhere every call does nothing.
class Report {
 public:
  Report(bool is_first, const Options& options);  // throws BadInput if a file cannot be written
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  void header(const Options& options, const Blas& blas, const Gpu* gpu, int ranks, const std::string& chosen,
              const std::string& places);
  void nics(const Grid& grid, const NicHints& asked);
  void begin(const Case& each, std::int64_t columns_done, double seconds_before);
  void screening(const char* when, const Screening& screening);
  void after_step(std::int64_t columns_done, const StepTimes& times);
  void solution(const std::vector<double>& x);
  void end(const Case& each, const Outcome& outcome, double threshold);
  void finish(int skipped);

 private:
  void line_of_names();
  void test_of(const Outcome& outcome);

  std::FILE* out_ = nullptr;
  std::FILE* json_ = nullptr;
  std::FILE* solution_ = nullptr;
  bool owns_out_ = false;
  bool row_major_;
  std::size_t phases_;  // that there can be
  int lines_asked_;
  std::int64_t order_ = 0, columns_before_ = 0, step_ = 0;
  int lines_ = 0;
  double begun_ = 0, line_at_ = 0;
  StepTimes since_line_;
  int runs_ = 0, passed_ = 0, failed_ = 0;
};

}  // namespace dryfly::hpl
