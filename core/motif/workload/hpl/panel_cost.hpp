// What a panel of HPL takes, roughly, in closed form: the longer of two things that go on beside each other with
// look-ahead. One is the update of a process with the exchange of its rows; the other the chain from panel to panel:
// factoring, handing on to the next owner, and bringing its columns up to date. Samples are compared with it, so that
// only their ratio to it has to be interpolated.
//
// Left out: everything that messages do to each other.
#pragma once

#include <cstdint>
#include <vector>

#include "core/motif/workload/hpl/panel_plan.hpp"
#include "core/motif/workload/hpl/problem.hpp"
#include "core/motif/workload/work_rates.hpp"

namespace dryfly::motif::hpl {

class PanelCost {
 public:
  // `round`: of a short message from call to call. All of them must outlive it.
  PanelCost(const Problem& problem, const WorkRates& rates, const WorkRates& panel_rates, Rate link, Duration round)
      : problem_(problem),
        rates_(rates),
        panel_rates_(panel_rates),
        link_(link),
        round_ps_(static_cast<double>(round.ps)),
        plan_(plan_panel(problem, problem.block)) {}

  double ps(std::uint64_t panel) const;
  double ps(std::uint64_t from, std::uint64_t until) const;

 private:
  double factoring_ps(std::uint64_t rows) const;
  double exchange_ps(std::uint64_t columns) const;
  double update_ps(std::uint64_t rows, std::uint64_t columns) const;

  const Problem& problem_;
  const WorkRates& rates_;
  const WorkRates& panel_rates_;
  const Rate link_;
  const double round_ps_;
  const std::vector<PanelStep> plan_;
};

}  // namespace dryfly::motif::hpl
