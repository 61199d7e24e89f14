// How many rows a panel's pivots move between the processes of a process column.
//
// The pivots are drawn as `dryfly-hpl` draws them under --skip-numerics: as for a random matrix, so that the messages
// are the same ones. Left out: which rows they are within a process, of which only the number counts here.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/motif/workload/hpl/problem.hpp"

namespace dryfly::motif::hpl {

// By position in the process column, counted from the owner of the block on top; one more than there are positions.
struct RowMoves {
  std::vector<std::uint32_t> gathered;   // where the rows that a process gives to U begin among all of them
  std::vector<std::uint32_t> displaced;  // and of the rows that leave the top block, those that it gets
  std::uint32_t exchanges = 0;           // rows of the top block whose pivot is another row
};

// Those of all panels, each made when it is first asked for and kept for a while: ranks are about at the same panel.
class RowMovesOfPanels {
 public:
  explicit RowMovesOfPanels(const Problem& problem) : problem_(problem) {}
  const RowMoves& of(std::uint64_t panel);

 private:
  std::vector<std::uint64_t> pivots(std::uint64_t panel) const;
  RowMoves make(std::uint64_t panel) const;

  const Problem& problem_;
  std::map<std::uint64_t, RowMoves> kept_;
};

}  // namespace dryfly::motif::hpl
