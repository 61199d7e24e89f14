// The exchange of rows that a panel's pivots ask for, in the columns to its right.
//
// The rows that come to the top form U, which every process of a column needs; the rows that were on top go to where
// the others came from. HPL's three ways are kept: all in log2 P rounds (binary exchange), a tree and a ring with
// fewer bytes and more rounds (spread-roll), or the first below a number of columns and the second above (mix).
#pragma once

#include <cstdint>
#include <vector>

#include "panel.hpp"

namespace dryfly::hpl {

enum class SwapKind { binary, spread, mix };

struct SwapOptions {
  SwapKind kind = SwapKind::mix;
  std::int64_t threshold = 64;  // columns, for mix
  bool equal_pieces = true;     // HPL's equilibration: the ring moves pieces of equal size
  bool transposed_u = false;    // U is kept by rows
};

// What one panel's pivots do to the rows, seen from one process.
struct RowMoves {
  struct Move {
    std::int64_t local_row;  // below the top block, here
    std::int64_t top;        // index within the top block
  };
  std::vector<std::int64_t> offsets;   // by position from the owner row: where its rows begin among those gathered
  std::vector<std::int64_t> gathered;  // index in U of each gathered row
  std::vector<std::int64_t> mine;      // local rows that I give, in order
  std::vector<std::int64_t> displaced_offsets;  // by position: rows that leave the top block for that process
  std::vector<std::int64_t> displaced;          // their indices in the top block
  std::vector<std::int64_t> arriving;           // local rows here that they go to
  int position = 0;                             // mine, counted from the owner row

  RowMoves(const Grid& grid, const Matrix& matrix, const Panel& panel);
};

// The exchange for a range of columns, from packing to U. Several can be under way.
class RowExchange {
 public:
  RowExchange(const Grid& grid, const SwapOptions& options) : grid_(grid), options_(options) {}

  void start(const Panel& panel, const RowMoves& moves, Matrix& matrix, std::int64_t first, std::int64_t count, int tag,
             Traffic& traffic);
  Schedule& schedule() { return schedule_; }
  void finish(const Panel& panel, const RowMoves& moves, Matrix& matrix);

  double* u() const { return u_.data(); }
  std::int64_t u_stride() const { return u_stride_; }
  std::int64_t elements() const { return u_.count() + gathered_.count() + displaced_.count(); }

 private:
  void pack(const Panel& panel, const RowMoves& moves, Matrix& matrix);
  void spread(const RowMoves& moves, int tag, bool with_gather);
  void roll(const RowMoves& moves, int tag);

  const Grid& grid_;
  SwapOptions options_;
  std::int64_t first_ = 0, count_ = 0, width_ = 0, u_stride_ = 1;
  int owner_row_ = 0;
  Doubles gathered_, displaced_, u_;
  Schedule schedule_;
};

// With one process row there is nothing to send: the rows change places in the matrix.
void exchange_rows_in_place(const Panel& panel, Matrix& matrix, std::int64_t first, std::int64_t count);

}  // namespace dryfly::hpl
