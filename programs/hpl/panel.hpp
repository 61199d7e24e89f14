// One panel: NB columns of [A | b] that a process column factors with partial pivoting and then hands to the others.
//
// As in HPL the triangle on top (L1, with U above its diagonal) is kept by every process of the column: the row that
// wins a column travels with the search for the pivot, so that the triangular solves inside the panel need no
// message. What is broadcast along the process rows is one block: L1, the pivots, and L2, the rows below.
#pragma once

#include <cstdint>
#include <vector>

#include "blas.hpp"
#include "matrix.hpp"
#include "traffic.hpp"

namespace dryfly::hpl {

enum class Variant { left, crout, right };
// Hybrids: point to point for all of the first panel, or for the first column of each panel.
enum class PivotSearch { point_to_point, collective, hybrid_panel, hybrid_column };

struct PanelOptions {
  Variant leaf = Variant::right;       // PFACT
  Variant recursion = Variant::right;  // RFACT
  int leaf_columns = 8;                // NBMIN
  int pieces = 2;                      // NDIV
  PivotSearch search = PivotSearch::point_to_point;
};

class Panel {
 public:
  Panel() = default;
  // Room for the largest panel of this matrix; with a GPU there too.
  Panel(const Grid& grid, const Matrix& matrix, Transfers transfers);

  void set(const Grid& grid, const Matrix& matrix, std::int64_t index, bool transposed_top);

  std::int64_t index = 0;   // of the block column
  std::int64_t column = 0;  // global, of its first column; also its first row
  std::int64_t width = 0;
  int owner_column = 0, owner_row = 0;
  std::int64_t first_row = 0;  // local, of L2
  std::int64_t rows = 0;       // of L2 here
  std::int64_t low_stride = 1;
  bool transposed_top = false;

  // As the process has it that factors it.
  double* top() const { return buffer_.data(); }                     // L1, width x width
  double* pivots() const { return buffer_.data() + width * width; }  // global row that each row is exchanged with
  double* packed_low() const { return pivots() + width; }
  std::int64_t message() const { return width * width + width + low_stride * width; }
  std::int64_t elements() const { return buffer_.count() + on_gpu_.count(); }
  // As the update has it.
  double* used_top() const { return on_gpu_.data() != nullptr ? on_gpu_.data() : buffer_.data(); }
  // L2, in the matrix itself where this process has factored it there.
  const double* low = nullptr;
  std::int64_t used_low_stride = 1;

  // What MPI moves.
  double* travelling() const { return staged_ ? buffer_.data() : used_top(); }
  Schedule broadcast;
  bool there = false;        // after the broadcast, where it is used
  Gpu::Mark used = nullptr;  // by the last kernel that reads it

 private:
  Doubles buffer_, on_gpu_;
  bool staged_ = false;
};

// Factors `panel`, for the processes of its column. Afterwards top and pivots are set, and what lies below is packed
// for the broadcast if there is anybody to receive it, or a GPU to use it.
class PanelFactor {
 public:
  PanelFactor(const Grid& grid, const Blas& blas, const PanelOptions& options);

  // `rows`: this process's rows of it, by columns, from the first on that is not finished.
  void factor(Panel& panel, const Matrix& matrix, double* rows, std::int64_t stride);

 private:
  void recurse(std::int64_t begin, std::int64_t count);
  void leaf(std::int64_t begin, std::int64_t count);
  void pivot(std::int64_t column);
  void solve_top(std::int64_t first, std::int64_t rows, std::int64_t column, std::int64_t columns);
  void update_low(std::int64_t active_from, std::int64_t first, std::int64_t depth, std::int64_t column,
                  std::int64_t columns);
  bool searches_alone(std::int64_t column) const;
  void exchange(std::vector<double>& candidate);
  void reduce(std::vector<double>& candidate);
  void finish(Panel& panel);

  // The local rows that take part once row `column` of the panel is chosen or being chosen.
  std::int64_t active(std::int64_t column) const { return has_top_ ? column : 0; }
  double* row_of(std::int64_t row, std::int64_t column) const { return work_ + row + column * stride_; }
  double* top_at(std::int64_t row, std::int64_t column) const { return top_ + row + column * width_; }

  const Grid& grid_;
  const Blas& blas_;
  PanelOptions options_;
  bool first_panel_ = false;

  double* work_ = nullptr;  // the local rows of the panel
  std::int64_t panel_column_ = 0, stride_ = 0, rows_ = 0, width_ = 0;
  double* top_ = nullptr;
  double* pivots_ = nullptr;
  const Matrix* matrix_ = nullptr;
  std::int64_t first_row_ = 0;  // local row of work_[0]
  bool has_top_ = false;
  std::vector<double> candidate_, other_;
};

}  // namespace dryfly::hpl
