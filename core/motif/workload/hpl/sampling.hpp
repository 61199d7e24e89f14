// Runs a skeleton of HPL: all of it, or a sample of its panels.
//
// A panel's time falls with the trailing matrix, smoothly. So the panels are divided into strata of about equal time,
// by a cost that is known in closed form, and in each one stretch of consecutive panels is run, at a place drawn in it.
// What counts is how much longer the stretch took than the closed form says; between stretches that ratio is
// interpolated. The bound of the error is twice the standard error, from how far each ratio is off the line between its
// neighbours, and how much the ratio still rises or falls within the stretches, which begin in step. A sample whose
// bound is too large is drawn anew with twice as many stretches (docs/model/skeleton-hpl.md#sampling).
#pragma once

#include <cstdint>
#include <vector>

#include "core/motif/workload/hpl/panel_cost.hpp"
#include "core/motif/workload/hpl/setting.hpp"
#include "core/motif/workload/workload.hpp"

namespace dryfly::motif::hpl {

struct Sampling {
  bool is_full = true;
  std::uint64_t stretches = 0;
  std::uint64_t panels = 0;  // of a stretch that count
  std::uint64_t warm = 0;    // and before them, that do not
  std::uint32_t rounds = 0;  // of a ring of pieces; 0: all
  double bound = 0;          // of the error, a share of the time

  // SpecError.
  static Sampling read(Parameters& parameters, const Problem& problem);
  bool is_all(const Problem& problem) const { return problem.panels() <= 2 * stretches * (panels + warm); }
};

struct Equipment {
  const WorkRates& rates;
  const WorkRates& panel_rates;
  Machinery machinery;
  std::vector<std::uint32_t> swap_nics;  // none: the rank's own
  std::vector<std::uint32_t> broadcast_nics;
};

class Runner {
 public:
  // All of them must outlive it.
  Runner(Stage& stage, const Problem& problem, Equipment equipment);

  Answer all();
  // With more stretches than asked for where the bound wants them, or with all panels.
  Answer sampled(Sampling sampling);

 private:
  using Phase = std::pair<std::string, Duration>;
  struct Sample {
    double panel_ps = 0;        // the mean of a panel of the stretch, over ranks
    double ratio = 0;           // of that to what it costs in closed form
    double drift = 0;           // of the second half's ratio from the first's
    std::vector<Phase> phases;  // of the stretch
  };
  struct Stratum {
    std::uint64_t from = 0;
    std::uint64_t until = 0;
    double cost = 0;
    Stretch stretch;
    Sample sample;

    double middle() const { return 0.5 * static_cast<double>(stretch.counted + stretch.last); }
  };

  void prepare(Job& job, Setting& setting) const;
  flight::Lumping lumping(std::uint32_t rounds) const;
  Sample run(const Stretch& stretch, const flight::Lumping& lumping, Answer& answer);
  std::vector<Stratum> sample(const Sampling& sampling, Answer& answer);
  // The triangular solve, from a few blocks of it.
  double solve_ps(Answer& answer);
  std::vector<Stratum> strata(std::uint64_t count) const;
  Stretch place(const Stratum& stratum, const Sampling& sampling, std::uint64_t number) const;
  // The panels' time, with the ratio interpolated.
  double integral_ps(const std::vector<Stratum>& parts) const;
  static double uncertainty_ps(const std::vector<Stratum>& parts);
  static void tell(const std::vector<Stratum>& parts, double whole_ps, Answer& answer);

  Stage& stage_;
  const Problem& problem_;
  const Equipment equipment_;
  const PanelCost cost_;
};

}  // namespace dryfly::motif::hpl
