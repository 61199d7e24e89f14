#include "panel.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "work.hpp"

namespace dryfly::hpl {
namespace {

std::int64_t column_bytes(std::int64_t rows) { return rows * static_cast<std::int64_t>(sizeof(double)); }

// Without numerics a pivot is drawn, so that rows are exchanged as they are for a random matrix.
std::uint64_t draw(std::int64_t column, int process) {
  std::uint64_t state = static_cast<std::uint64_t>(column) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(process);
  for (int round = 0; round < 3; ++round) state = (state ^ (state >> 31)) * 0xbf58476d1ce4e5b9u;
  return state ^ (state >> 32);
}

// A candidate for the pivot as it travels: these numbers, the candidate's row, and the row that it will replace.
enum Field : std::size_t { kSize, kRow, kHasReplaced, kFields };

// Whether the candidate `b` is to be preferred: larger, or as large and further up, as LAPACK chooses.
bool prefer(const double* b, const double* a) {
  return b[kSize] > a[kSize] || (b[kSize] == a[kSize] && b[kRow] < a[kRow]);
}

void combine(const double* from, double* into, std::size_t width) {
  if (prefer(from, into)) {
    into[kSize] = from[kSize];
    into[kRow] = from[kRow];
    std::memcpy(into + kFields, from + kFields, width * sizeof(double));
  }
  if (from[kHasReplaced] != 0) {
    into[kHasReplaced] = 1;
    std::memcpy(into + kFields + width, from + kFields + width, width * sizeof(double));
  }
}

void combine_operation(void* from, void* into, int* count, MPI_Datatype* type) {
  int bytes = 0;
  MPI_Type_size(*type, &bytes);
  const std::size_t length = static_cast<std::size_t>(bytes) / sizeof(double), width = (length - kFields) / 2;
  for (int i = 0; i < *count; ++i)
    combine(static_cast<double*>(from) + static_cast<std::size_t>(i) * length,
            static_cast<double*>(into) + static_cast<std::size_t>(i) * length, width);
}

// Compiled for each kind of processor, since the program itself is built for any.
#if defined(__x86_64__) && defined(__GNUC__)
#define EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define EACH_PROCESSOR
#endif

EACH_PROCESSOR void scale(double* x, std::int64_t count, double factor) {
  for (std::int64_t i = 0; i < count; ++i) x[i] *= factor;
}

EACH_PROCESSOR void subtract_multiple(double* __restrict y, const double* __restrict x, std::int64_t count,
                                      double factor) {
  for (std::int64_t i = 0; i < count; ++i) y[i] -= factor * x[i];
}

EACH_PROCESSOR double largest_size(const double* x, std::int64_t count) {
  double lanes[16] = {};
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16)
    for (int lane = 0; lane < 16; ++lane) {
      const double size = std::fabs(x[i + lane]);
      lanes[lane] = size > lanes[lane] ? size : lanes[lane];
    }
  double largest = 0;
  for (const double lane : lanes) largest = std::max(largest, lane);
  for (; i < count; ++i) largest = std::max(largest, std::fabs(x[i]));
  return largest;
}

std::int64_t position_of_largest(const double* x, std::int64_t count) {
  const double largest = largest_size(x, count);
  for (std::int64_t i = 0; i < count; ++i)
    if (std::fabs(x[i]) == largest) return i;
  return 0;  // a column of NaN
}

// Whether L2 has a place beside the matrix.
bool is_packed(const Grid& grid, const Matrix& matrix) { return grid.columns() > 1 || matrix.gpu() != nullptr; }

}  // namespace

Panel::Panel(const Grid& grid, const Matrix& matrix, Transfers transfers)
    : staged_(matrix.gpu() != nullptr && transfers == Transfers::staged) {
  Gpu* gpu = matrix.gpu();
  const std::int64_t widest = std::min(matrix.block(), matrix.order());
  const std::int64_t stride = column_stride(matrix.rows().size(), 8);
  const std::int64_t room = widest * widest + widest + (is_packed(grid, matrix) ? stride * widest : 0);
  buffer_ = Doubles(room, gpu, Gpu::Place::pinned);
  if (gpu == nullptr) return;
  on_gpu_ = Doubles(room, gpu, Gpu::Place::device);
  used = gpu->new_mark();
}

void Panel::set(const Grid& grid, const Matrix& matrix, std::int64_t block_column, bool transposed) {
  index = block_column;
  column = block_column * matrix.block();
  width = std::min(matrix.block(), matrix.order() - column);
  owner_column = matrix.columns().owner(column);
  owner_row = matrix.rows().owner(column);
  first_row = matrix.rows().below(column + width);
  rows = matrix.rows().size() - first_row;
  low_stride = is_packed(grid, matrix) ? column_stride(rows, 8) : 0;
  transposed_top = transposed;
  low = used_top() + (packed_low() - top());
  used_low_stride = low_stride;
  there = false;
}

PanelFactor::PanelFactor(const Grid& grid, const Blas& blas, const PanelOptions& options)
    : grid_(grid), blas_(blas), options_(options) {}

void PanelFactor::factor(Panel& panel, const Matrix& matrix, double* rows, std::int64_t stride) {
  width_ = panel.width;
  panel_column_ = panel.column;
  stride_ = stride;
  has_top_ = grid_.row() == panel.owner_row;
  first_row_ = matrix.rows().below(panel.column);
  rows_ = matrix.rows().size() - first_row_;
  work_ = rows;
  top_ = panel.top();
  pivots_ = panel.pivots();
  matrix_ = &matrix;
  first_panel_ = panel.index == 0;
  const std::size_t message = kFields + 2 * static_cast<std::size_t>(width_);
  candidate_.assign(message, 0.0);
  other_.resize(message);
  recurse(0, width_);
  finish(panel);
}

void PanelFactor::recurse(std::int64_t begin, std::int64_t count) {
  if (count <= options_.leaf_columns) return leaf(begin, count);
  // Pieces are multiples of NBMIN, as in HPL, so that the kernels see even widths.
  const std::int64_t leaves = (count + options_.leaf_columns - 1) / options_.leaf_columns;
  const std::int64_t piece = (leaves + options_.pieces - 1) / options_.pieces * options_.leaf_columns;
  const std::int64_t end = begin + count;
  for (std::int64_t at = begin; at < end; at += piece) {
    const std::int64_t here = std::min(piece, end - at), after = at + here, done = at - begin;
    if (options_.recursion == Variant::left) {
      solve_top(begin, done, at, here);
      update_low(at, begin, done, at, here);
    } else if (options_.recursion == Variant::crout) {
      update_low(at, begin, done, at, here);
    }
    recurse(at, here);
    if (options_.recursion == Variant::crout)
      blas_.subtract_product(here, end - after, done, top_at(at, begin), width_, top_at(begin, after), width_, false,
                             top_at(at, after), width_);
    if (options_.recursion != Variant::left) solve_top(at, here, after, end - after);
    if (options_.recursion == Variant::right) update_low(after, at, here, after, end - after);
  }
}

void PanelFactor::solve_top(std::int64_t first, std::int64_t rows, std::int64_t column, std::int64_t columns) {
  blas_.solve_unit_lower(rows, columns, top_at(first, first), width_, false, top_at(first, column), width_);
}

void PanelFactor::update_low(std::int64_t active_from, std::int64_t first, std::int64_t depth, std::int64_t column,
                             std::int64_t columns) {
  const std::int64_t row = active(active_from);
  blas_.subtract_product(rows_ - row, columns, depth, row_of(row, first), stride_, top_at(first, column), width_, false,
                         row_of(row, column), stride_);
}

void PanelFactor::leaf(std::int64_t begin, std::int64_t count) {
  const std::int64_t end = begin + count;
  for (std::int64_t j = begin; j < end; ++j) {
    // Each column is searched, scaled, and subtracted from count / 2 others on average, as it comes from memory.
    if (!memory_traffic((3 + 3 * (count - 1) / 2) * column_bytes(rows_ - active(j)), blas_.whose())) {
      pivot(j);
      continue;
    }
    if (options_.leaf == Variant::left) {
      solve_top(begin, j - begin, j, 1);
      for (std::int64_t k = begin; k < j; ++k)
        subtract_multiple(row_of(active(j), j), row_of(active(j), k), rows_ - active(j), *top_at(k, j));
    } else if (options_.leaf == Variant::crout) {
      for (std::int64_t k = begin; k < j; ++k)
        subtract_multiple(row_of(active(j), j), row_of(active(j), k), rows_ - active(j), *top_at(k, j));
    }
    pivot(j);
    if (options_.leaf == Variant::crout)
      for (std::int64_t c = j + 1; c < end; ++c)
        for (std::int64_t k = begin; k < j; ++k) *top_at(j, c) -= *top_at(j, k) * *top_at(k, c);
    const std::int64_t row = active(j + 1);
    scale(row_of(row, j), rows_ - row, 1.0 / *top_at(j, j));
    if (options_.leaf == Variant::right)
      for (std::int64_t c = j + 1; c < end; ++c)
        subtract_multiple(row_of(row, c), row_of(row, j), rows_ - row, *top_at(j, c));
  }
}

// Finds the largest element of a column among all processes, and exchanges rows: the winner's goes to the top of
// everybody, the row it replaces to the winner's place.
void PanelFactor::pivot(std::int64_t column) {
  const auto width = static_cast<std::size_t>(width_);
  const std::int64_t row = active(column);
  double* candidate = candidate_.data();
  double *winner = candidate + kFields, *replaced = winner + width;
  candidate[kSize] = -1;
  candidate[kRow] = static_cast<double>(matrix_->order());
  candidate[kHasReplaced] = has_top_ ? 1 : 0;
  std::int64_t best = -1;
  if (row < rows_) {
    double size = 0;
    if (numerics_skipped()) {
      const std::uint64_t drawn = draw(panel_column_ + column, grid_.row());
      best = row + static_cast<std::int64_t>(drawn % static_cast<std::uint64_t>(rows_ - row));
      size = static_cast<double>(drawn >> 11);
    } else {
      best = row + position_of_largest(row_of(row, column), rows_ - row);
      size = std::fabs(*row_of(best, column));
    }
    // NaN compares with nothing; as infinity it is chosen by all alike, and ends in a residual that fails.
    candidate[kSize] = std::isnan(size) ? std::numeric_limits<double>::infinity() : size;
    candidate[kRow] = static_cast<double>(matrix_->rows().global(first_row_ + best));
    for (std::size_t c = 0; c < width; ++c) winner[c] = *row_of(best, static_cast<std::int64_t>(c));
  }
  if (has_top_)
    for (std::size_t c = 0; c < width; ++c) replaced[c] = *row_of(column, static_cast<std::int64_t>(c));
  const double mine = candidate[kRow];
  if (grid_.rows() > 1) {
    if (searches_alone(column))
      exchange(candidate_);
    else
      reduce(candidate_);
  }
  if (best >= 0 && candidate[kRow] == mine)
    for (std::size_t c = 0; c < width; ++c) *row_of(best, static_cast<std::int64_t>(c)) = replaced[c];
  for (std::size_t c = 0; c < width; ++c) *top_at(column, static_cast<std::int64_t>(c)) = winner[c];
  pivots_[column] = candidate[kRow];
}

bool PanelFactor::searches_alone(std::int64_t column) const {
  switch (options_.search) {
    case PivotSearch::point_to_point:
      return true;
    case PivotSearch::collective:
      return false;
    case PivotSearch::hybrid_panel:
      return first_panel_;
    case PivotSearch::hybrid_column:
      return column == 0;
  }
  return true;
}

void PanelFactor::reduce(std::vector<double>& candidate) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op operation = MPI_OP_NULL;
  MPI_Type_contiguous(static_cast<int>(candidate.size()), MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  MPI_Op_create(combine_operation, 1, &operation);
  MPI_Allreduce(MPI_IN_PLACE, candidate.data(), 1, type, operation, grid_.along_column());
  MPI_Op_free(&operation);
  MPI_Type_free(&type);
}

// By point to point: recursive doubling, where processes beyond the largest power of two take part through another.
void PanelFactor::exchange(std::vector<double>& candidate) {
  const MPI_Comm where = grid_.along_column();
  const int count = static_cast<int>(candidate.size()), size = grid_.rows(), rank = grid_.row(), tag = 0;
  int power = 1;
  while (power * 2 <= size) power *= 2;
  const auto take = [&](int peer) {
    MPI_Recv(other_.data(), count, MPI_DOUBLE, peer, tag, where, MPI_STATUS_IGNORE);
    combine(other_.data(), candidate.data(), static_cast<std::size_t>(width_));
  };
  if (rank >= power) {
    MPI_Send(candidate.data(), count, MPI_DOUBLE, rank - power, tag, where);
    MPI_Recv(candidate.data(), count, MPI_DOUBLE, rank - power, tag, where, MPI_STATUS_IGNORE);
    return;
  }
  if (rank + power < size) take(rank + power);
  for (int distance = 1; distance < power; distance *= 2) {
    const int peer = rank ^ distance;
    MPI_Sendrecv(candidate.data(), count, MPI_DOUBLE, peer, tag, other_.data(), count, MPI_DOUBLE, peer, tag, where,
                 MPI_STATUS_IGNORE);
    combine(other_.data(), candidate.data(), static_cast<std::size_t>(width_));
  }
  if (rank + power < size) MPI_Send(candidate.data(), count, MPI_DOUBLE, rank + power, tag, where);
}

void PanelFactor::finish(Panel& panel) {
  const auto top_bytes = static_cast<std::size_t>(width_) * sizeof(double);
  if (has_top_)
    for (std::int64_t c = 0; c < width_; ++c) std::memcpy(row_of(0, c), top_at(0, c), top_bytes);
  if (panel.transposed_top)
    for (std::int64_t c = 0; c < width_; ++c)
      for (std::int64_t r = 0; r < c; ++r) std::swap(*top_at(r, c), *top_at(c, r));
  const double* low = row_of(panel.first_row - first_row_, 0);
  const bool on_gpu = matrix_->gpu() != nullptr;
  if ((grid_.columns() > 1 || on_gpu) && memory_traffic(2 * width_ * column_bytes(panel.rows), blas_.whose()))
    for (std::int64_t c = 0; c < width_; ++c)
      std::memcpy(panel.packed_low() + c * panel.low_stride, low + c * stride_,
                  static_cast<std::size_t>(panel.rows) * sizeof(double));
  if (on_gpu) return;
  panel.low = low;
  panel.used_low_stride = stride_;
}

}  // namespace dryfly::hpl
