// What is printed, and the JSON file. The line of the result and that of the residual have HPL's form.
#pragma once

#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "../hpl/output.hpp"
#include "../hpl/phases.hpp"
#include "../hpl/screen.hpp"
#include "options.hpp"

namespace dryfly::mxp {

struct Outcome {
  std::int64_t order = 0, block = 0;
  double factor_s = 0, refine_s = 0;
  double memory_bytes = 0;  // of one process, the most
  Solution solution;
  double residual = 0;  // of the test, made after the time has stopped
  bool solved = true;   // false: the numerics were skipped
  bool passed = false;
  hpl::StepSummary steps;
  hpl::Screening before, after;  // empty unless asked for

  double seconds() const { return factor_s + refine_s; }
};

// On the first process only; elsewhere every call does nothing.
class Report {
 public:
  Report(bool is_first, const Options& options);  // throws BadInput if a file cannot be written
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  void header(const Kernel& kernel, const hpl::Gpu* gpu, int ranks, const std::string& places);
  void screening(const char* when, const hpl::Screening& screening);
  void begin(std::int64_t order, std::int64_t columns_done, double seconds_before);
  void after_step(std::int64_t columns_done, const hpl::StepTimes& times);
  void end(const Outcome& outcome);
  void finish();

 private:
  void write_json(const Outcome& outcome);

  const Options& options_;
  bool is_first_;
  std::span<const hpl::NamedPhase> phases_;  // that there can be
  std::FILE* json_ = nullptr;
  std::FILE* solution_ = nullptr;
  double order_ = 0, begun_ = 0, line_at_ = 0, columns_before_ = 0;
  int step_ = 0, lines_ = 0;
  hpl::StepTimes since_line_;
  int runs_ = 0, passed_ = 0;
};

}  // namespace dryfly::mxp
