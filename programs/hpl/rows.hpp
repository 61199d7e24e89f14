// The exchange of rows that a panel's pivots ask for, in the columns to its right.
//
// The rows that come to the top form U, which every process of a column needs; the rows that were on top go to where
// the others came from. HPL's three ways are kept: all in log2 P rounds (binary exchange), a tree and a ring with
// fewer bytes and more rounds (spread-roll), or the first below a number of columns and the second above (mix).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "panel.hpp"
#include "phases.hpp"

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

// Those of the lists that rows are packed and unpacked by, where that is done.
struct RowLists {
  std::span<const std::int64_t> gathered, mine, displaced, arriving;
};

// The lists in a GPU's memory, those of one panel at a time.
class RowListsOnGpu {
 public:
  RowListsOnGpu() = default;
  RowListsOnGpu(Gpu* gpu, std::int64_t widest);

  // The lists of the panel before are no longer being copied: the host has waited for a kernel behind.
  RowLists put(const RowMoves& moves);

 private:
  Gpu* gpu_ = nullptr;
  Doubles on_host_, on_gpu_;  // as whole numbers
};

// The exchange for a range of columns, from packing to U. Several can be under way.
class RowExchange {
 public:
  // Where the time goes is added to `times`.
  RowExchange(const Grid& grid, const SwapOptions& options, StepTimes& times)
      : grid_(grid), options_(options), times_(times) {}
  // In a GPU's memory, which is taken at once, because taking it is dear: for so many columns.
  RowExchange(const Grid& grid, const SwapOptions& options, StepTimes& times, Gpu* gpu, Transfers transfers,
              std::int64_t widest, std::int64_t columns);

  void start(const Panel& panel, const RowMoves& moves, const RowLists& lists, Matrix& matrix, std::int64_t first,
             std::int64_t count, int tag, Traffic& traffic);
  // Waits for it.
  void finish(const RowMoves& moves, const RowLists& lists, Matrix& matrix, Traffic& traffic);

  double* u() const { return u_.data(); }
  std::int64_t u_stride() const { return u_stride_; }
  std::int64_t elements() const {
    return u_.count() + gathered_.count() + displaced_.count() + staged_gathered_.count() + staged_displaced_.count();
  }

 private:
  void pack(const Panel& panel, const RowMoves& moves, const RowLists& lists, Matrix& matrix);
  void unpack(const RowMoves& moves, const RowLists& lists, Matrix& matrix);
  bool is_staged() const { return staged_gathered_.data() != nullptr; }
  void stage(double* to, const double* from, std::int64_t first_row, std::int64_t end_row);
  void spread(const RowMoves& moves, int tag, bool with_gather);
  void roll(const RowMoves& moves, int tag);

  const Grid& grid_;
  SwapOptions options_;
  std::int64_t first_ = 0, count_ = 0, width_ = 0, u_stride_ = 1;
  int owner_row_ = 0;
  StepTimes& times_;
  Gpu* gpu_ = nullptr;
  Gpu::Mark packed_ = nullptr;
  Doubles gathered_, displaced_, u_;
  Doubles staged_gathered_, staged_displaced_;
  double *moved_gathered_ = nullptr, *moved_displaced_ = nullptr;  // what MPI is given of them
  Schedule schedule_;
};

// With one process row there is nothing to send: the rows change places in the matrix.
void exchange_rows_in_place(const Panel& panel, Matrix& matrix, std::int64_t first, std::int64_t count);
void exchange_rows_on_gpu(const Panel& panel, Matrix& matrix, std::int64_t first, std::int64_t count);

}  // namespace dryfly::hpl
