// The recursive factorisation of a panel as a list: what is computed, and where the leaves with their pivots come, as
// programs/hpl/panel.cpp does it. The same for all panels of a width.
#pragma once

#include <cstdint>
#include <vector>

#include "core/motif/workload/hpl/problem.hpp"

namespace dryfly::motif::hpl {

struct PanelStep {
  enum class Kind : std::uint8_t { leaf, solve_top, update_top, update_low };
  Kind kind = Kind::leaf;
  std::uint64_t column = 0;   // leaf: its first; update_low: the first that is not chosen yet
  std::uint64_t rows = 0;     // of the triangle or product, where the panel decides them; leaf: its columns
  std::uint64_t columns = 0;  // of the product, or right sides
  std::uint64_t depth = 0;    // of the product
};

std::vector<PanelStep> plan_panel(const Problem& problem, std::uint64_t width);

}  // namespace dryfly::motif::hpl
