// The exchange of rows that a panel's pivots ask for, in some columns of the matrix, along a process column: the rows
// that leave the top block go down a tree, and those that come to it are gathered by all processes. As
// programs/hpl/rows.cpp has it, a file for each way of gathering.
#pragma once

#include <cstdint>

#include "core/motif/flight/traffic.hpp"
#include "core/motif/workload/hpl/problem.hpp"
#include "core/motif/workload/hpl/row_moves.hpp"

namespace dryfly::motif::hpl {

// A process column whose rows move, seen from one of its processes. Positions are counted from the owner of the block
// on top.
struct RowColumn {
  const Problem* problem = nullptr;
  const RowMoves* moves = nullptr;
  std::uint32_t column = 0;
  std::uint32_t owner = 0;     // its row
  std::uint32_t position = 0;  // of this process
  std::uint64_t columns = 0;   // of the matrix, that are exchanged
  std::uint32_t tag = 0;       // and the next one
  flight::Lumping lumping;     // of the rounds of the ring

  std::uint32_t size() const { return problem->rows; }
  void pass(flight::Transfers& transfers, std::uint32_t peer, std::uint64_t rows, std::uint32_t which,
            bool is_send) const {
    const std::uint32_t rank = problem->rank_at((owner + peer) % size(), column);
    transfers.push_back({rank, tag + which, rows * columns * element_bytes, is_send});
  }
};

// What this process does in a round of the tree, and of the two ways of gathering.
void spread(const RowColumn& rows, std::uint32_t number, flight::Transfers& transfers);
void gather(const RowColumn& rows, std::uint32_t number, flight::Transfers& transfers);
void equalise(const RowColumn& rows, flight::Transfers& transfers);
void roll(const RowColumn& rows, std::uint32_t lump, flight::Transfers& transfers);

class RowExchange final : public flight::Rounds {
 public:
  RowExchange() = default;
  explicit RowExchange(const RowColumn& rows);

  bool round(std::uint32_t number, flight::Transfers& transfers) const override;
  Duration rest() const override;

 private:
  RowColumn rows_;
  std::uint32_t tree_rounds_ = 0;
  bool binary_ = false;
};

}  // namespace dryfly::motif::hpl
