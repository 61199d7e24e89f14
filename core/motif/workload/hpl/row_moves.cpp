#include "core/motif/workload/hpl/row_moves.hpp"

#include <algorithm>
#include <utility>

namespace dryfly::motif::hpl {
namespace {

// A grid of 342 columns may have as many panels under way; those before are made again if need be.
constexpr std::size_t kept_most = 4096;

std::uint64_t draw(std::uint64_t column, std::uint32_t process) {
  std::uint64_t state = column * 0x9e3779b97f4a7c15U + process;
  for (int round = 0; round < 3; ++round) state = (state ^ (state >> 31)) * 0xbf58476d1ce4e5b9U;
  return state ^ (state >> 32);
}

}  // namespace

const RowMoves& RowMovesOfPanels::of(std::uint64_t panel) {
  const auto found = kept_.find(panel);
  if (found != kept_.end()) return found->second;
  if (kept_.size() >= kept_most) kept_.erase(kept_.begin());
  return kept_.emplace(panel, make(panel)).first->second;
}

// Of each process a row below those that are chosen is drawn, and how large its element is.
std::vector<std::uint64_t> RowMovesOfPanels::pivots(std::uint64_t panel) const {
  const Cyclic rows = problem_.row_blocks();
  const std::uint64_t first = panel * problem_.block;
  const std::uint64_t width = std::min(problem_.block, problem_.order - first);
  std::vector<std::uint64_t> chosen(width);
  for (std::uint64_t column = 0; column < width; ++column) {
    std::uint64_t most = 0;
    bool found = false;
    for (std::uint32_t process = 0; process < problem_.rows; ++process) {
      const std::uint64_t first_row = rows.below(first, process);
      const std::uint64_t count = rows.size(process) - first_row;
      const std::uint64_t active = process == rows.owner(first) ? column : 0;
      if (active >= count) continue;
      const std::uint64_t drawn = draw(first + column, process);
      const std::uint64_t row = rows.global(first_row + active + drawn % (count - active), process);
      const std::uint64_t size = drawn >> 11;
      if (found && (size < most || (size == most && row >= chosen[column]))) continue;
      found = true;
      most = size;
      chosen[column] = row;
    }
  }
  return chosen;
}

RowMoves RowMovesOfPanels::make(std::uint64_t panel) const {
  const Cyclic rows = problem_.row_blocks();
  const std::uint64_t first = panel * problem_.block;
  const std::vector<std::uint64_t> chosen = pivots(panel);
  const std::uint64_t width = chosen.size();
  std::vector<std::uint64_t> top(width);
  std::map<std::uint64_t, std::uint64_t> below;
  for (std::uint64_t i = 0; i < width; ++i) top[i] = first + i;
  RowMoves moves;
  for (std::uint64_t i = 0; i < width; ++i) {
    const std::uint64_t row = chosen[i];
    moves.exchanges += row != first + i ? 1 : 0;
    std::swap(top[i], row < first + width ? top[row - first] : below.try_emplace(row, row).first->second);
  }
  std::vector<std::uint32_t> given(problem_.rows);
  std::vector<std::uint32_t> got(problem_.rows);
  for (const std::uint64_t row : top) ++given[rows.owner(row)];
  for (const auto& [row, source] : below) ++got[rows.owner(row)];
  moves.gathered.push_back(0);
  moves.displaced.push_back(0);
  for (std::uint32_t position = 0; position < problem_.rows; ++position) {
    const std::uint32_t process = (rows.owner(first) + position) % problem_.rows;
    moves.gathered.push_back(moves.gathered.back() + given[process]);
    moves.displaced.push_back(moves.displaced.back() + got[process]);
  }
  return moves;
}

}  // namespace dryfly::motif::hpl
