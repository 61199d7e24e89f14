#include "core/motif/workload/hpl/panel_cost.hpp"

#include <algorithm>
#include <bit>

namespace dryfly::motif::hpl {

double PanelCost::ps(std::uint64_t from, std::uint64_t until) const {
  double sum = 0;
  for (std::uint64_t panel = from; panel < until; ++panel) sum += ps(panel);
  return sum;
}

double PanelCost::ps(std::uint64_t panel) const {
  const std::uint64_t done = std::min((panel + 1) * problem_.block, problem_.order);
  const std::uint64_t rows = (problem_.order - done) / problem_.rows;
  const std::uint64_t columns = (problem_.order - done) / problem_.columns;
  const Bytes sent{problem_.columns > 1 ? problem_.block * (rows + problem_.block) * element_bytes : 0};
  const double hop_ps = static_cast<double>(transmission_time(sent, link_).ps);
  const double chain_ps = factoring_ps(rows) + hop_ps + update_ps(rows, problem_.block);
  const double all_ps = update_ps(rows, columns) + hop_ps;
  return problem_.depth == 0 ? chain_ps + all_ps : std::max(chain_ps, all_ps);
}

double PanelCost::factoring_ps(std::uint64_t rows) const {
  const std::uint64_t columns = problem_.block;
  std::uint64_t work_ps = 0;
  for (const PanelStep& step : plan_) {
    switch (step.kind) {
      case PanelStep::Kind::leaf:
        work_ps += step.rows * panel_rates_.memory(problem_.leaf_passes(step.rows, rows) * rows * element_bytes).ps;
        break;
      case PanelStep::Kind::solve_top:
        work_ps += panel_rates_.triangular_solve(step.rows, step.columns, Precision::fp64).ps;
        break;
      case PanelStep::Kind::update_top:
        work_ps += panel_rates_.product(step.rows, step.columns, step.depth, Precision::fp64).ps;
        break;
      case PanelStep::Kind::update_low:
        work_ps += panel_rates_.product(rows, step.columns, step.depth, Precision::fp64).ps;
        break;
    }
  }
  const double searches = static_cast<double>(columns) * std::bit_width(problem_.rows - 1);
  return static_cast<double>(work_ps) + searches * round_ps_;
}

double PanelCost::exchange_ps(std::uint64_t columns) const {
  if (problem_.rows == 1) return 0;
  const bool binary =
      problem_.swap == Swap::binary || (problem_.swap == Swap::mix && columns <= problem_.swap_threshold);
  const double rounds = std::bit_width(problem_.rows - 1) + (binary ? 0 : problem_.rows);
  const Bytes moved{problem_.block * columns * element_bytes};
  return rounds * round_ps_ + static_cast<double>(transmission_time(moved, link_).ps);
}

double PanelCost::update_ps(std::uint64_t rows, std::uint64_t columns) const {
  const std::uint64_t work_ps = rates_.triangular_solve(problem_.block, columns, Precision::fp64).ps +
                                rates_.product(rows, columns, problem_.block, Precision::fp64).ps;
  return static_cast<double>(work_ps) + exchange_ps(columns);
}

}  // namespace dryfly::motif::hpl
