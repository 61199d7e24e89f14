#include "core/motif/workload/hpl/panel_plan.hpp"

#include <algorithm>

namespace dryfly::motif::hpl {
namespace {

using Kind = PanelStep::Kind;

struct Planner {
  const Problem& problem;
  std::vector<PanelStep> steps;

  void solve_top(std::uint64_t rows, std::uint64_t columns) {
    steps.push_back({.kind = Kind::solve_top, .rows = rows, .columns = columns});
  }
  void update_low(std::uint64_t active_from, std::uint64_t depth, std::uint64_t columns) {
    steps.push_back({.kind = Kind::update_low, .column = active_from, .columns = columns, .depth = depth});
  }

  void recurse(std::uint64_t begin, std::uint64_t count) {
    if (count <= problem.leaf_columns) return steps.push_back({.kind = Kind::leaf, .column = begin, .rows = count});
    const std::uint64_t leaves = (count + problem.leaf_columns - 1) / problem.leaf_columns;
    const std::uint64_t piece = (leaves + problem.pieces - 1) / problem.pieces * problem.leaf_columns;
    const std::uint64_t end = begin + count;
    for (std::uint64_t at = begin; at < end; at += piece) {
      const std::uint64_t here = std::min(piece, end - at);
      const std::uint64_t after = at + here;
      const std::uint64_t done = at - begin;
      if (problem.recursion == Recursion::left) solve_top(done, here);
      if (problem.recursion != Recursion::right) update_low(at, done, here);
      recurse(at, here);
      if (problem.recursion == Recursion::crout) {
        steps.push_back({.kind = Kind::update_top, .rows = here, .columns = end - after, .depth = done});
      }
      if (problem.recursion != Recursion::left) solve_top(here, end - after);
      if (problem.recursion == Recursion::right) update_low(after, here, end - after);
    }
  }
};

}  // namespace

std::vector<PanelStep> plan_panel(const Problem& problem, std::uint64_t width) {
  Planner planner{problem, {}};
  planner.recurse(0, width);
  return std::move(planner.steps);
}

}  // namespace dryfly::motif::hpl
