// What all processes of a skeleton of HPL share: the problem, how its computing is timed, the lanes of its messages,
// what its pivots do, the part of its steps that is run, and the marks of that.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/motif/flight/traffic.hpp"
#include "core/motif/job/job.hpp"
#include "core/motif/workload/hpl/panel_plan.hpp"
#include "core/motif/workload/hpl/problem.hpp"
#include "core/motif/workload/hpl/row_moves.hpp"
#include "core/motif/workload/work_rates.hpp"

namespace dryfly::motif::hpl {

// How processors and GPUs of a rank work together (docs/model/skeleton-hpl.md#processors-and-gpus).
struct Machinery {
  bool gpu_is_free = false;  // the rank goes on with messages while its GPU multiplies
  Rate pcie{};               // between the memories, one way; 0: nothing is copied
  bool panel_on_cpu = false;
};

// Steps first to last; times are taken from the beginning of step `counted` on.
struct Stretch {
  std::uint64_t first = 0;
  std::uint64_t counted = 0;
  std::uint64_t last = 0;
  std::uint64_t middle() const { return counted + (last + 1 - counted) / 2; }
  bool solves = false;  // and solves the triangle behind the last step
};

// Of all ranks: when they begin step `counted`, are half-way, and end.
struct Marks {
  double begun_sum_ps = 0;
  double middle_sum_ps = 0;
  double ended_sum_ps = 0;
};

struct Phases {
  std::uint16_t panel = 0;
  std::uint16_t broadcast = 0;
  std::uint16_t swap = 0;
  std::uint16_t trsm = 0;
  std::uint16_t gemm = 0;
  std::uint16_t solve = 0;
};

struct Setting {
  Setting(const Problem& problem_, const WorkRates& rates_, const WorkRates& panel_rates_, const Machinery& machinery_)
      : problem(problem_), rates(rates_), panel_rates(panel_rates_), machinery(machinery_), moves(problem) {}

  const Problem& problem;
  const WorkRates& rates;        // of updates
  const WorkRates& panel_rates;  // of the factorisation of panels
  const Machinery& machinery;
  RowMovesOfPanels moves;
  std::map<std::uint64_t, std::vector<PanelStep>> plans;  // by width
  Stretch stretch;
  flight::Lumping lumping;
  Marks marks;
  Phases phases;
  Lane swap_lane = 0;
  Lane broadcast_lane = 0;
};

}  // namespace dryfly::motif::hpl
