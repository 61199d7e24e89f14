#include "solve.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "work.hpp"

namespace dryfly::hpl {
namespace {

constexpr std::int64_t kStripe = 32;   // columns made at a time
constexpr double kRoundOff = 0x1p-53;  // what HPL takes for eps

// y := y - A x
void subtract_product(std::int64_t rows, std::int64_t columns, const double* a, std::int64_t stride, const double* x,
                      double* y, WorkOf whose) {
  if (rows == 0 || !product(rows, 1, columns, DRYFLY_FP64, whose)) return;
  std::int64_t c = 0;
  for (; c + 4 <= columns; c += 4) {
    const double *a0 = a + c * stride, *a1 = a0 + stride, *a2 = a1 + stride, *a3 = a2 + stride;
    for (std::int64_t r = 0; r < rows; ++r)
      y[r] -= a0[r] * x[c] + a1[r] * x[c + 1] + a2[r] * x[c + 2] + a3[r] * x[c + 3];
  }
  for (; c < columns; ++c)
    for (std::int64_t r = 0; r < rows; ++r) y[r] -= a[r + c * stride] * x[c];
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values)
    if (!(std::fabs(value) <= most)) most = std::fabs(value);  // keeps NaN
  return most;
}

// The largest over all; NaN anywhere is infinity, because MPI_MAX would lose it.
double largest_of_all(double mine, MPI_Comm where) {
  if (std::isnan(mine)) mine = std::numeric_limits<double>::infinity();
  MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_MAX, where);
  return mine;
}

void sum_over(std::vector<double>& values, MPI_Comm where) {
  MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_SUM, where);
}

// What is known of y - U x on this process, and the two operations of a block; with the matrix in a GPU's memory there,
// where the vectors of a block go to and come from pinned memory.
class Open {
 public:
  Open(const Blas& blas, const Matrix& matrix, bool has_y)
      : blas_(blas),
        matrix_(matrix),
        gpu_(matrix.gpu()),
        y_(matrix.rows().size(), gpu_, Gpu::Place::device),
        block_(gpu_ != nullptr ? matrix.block() : 0, gpu_, Gpu::Place::device),
        block_on_host_(gpu_ != nullptr ? matrix.block() : 0, gpu_, Gpu::Place::pinned) {
    const double* from = has_y ? matrix.at(0, matrix.columns().local(matrix.order())) : nullptr;
    const auto begin = [from, to = y_.data(), count = matrix.rows().size()] {
      if (from != nullptr)
        std::copy_n(from, count, to);
      else
        std::fill_n(to, count, 0.0);
    };
    if (gpu_ == nullptr)
      begin();
    else
      gpu_->launch(KernelWork::memory((has_y ? 2 : 1) * bytes_of(matrix.rows().size())), begin);
  }

  const double* read(std::int64_t row, std::int64_t width) {
    if (gpu_ == nullptr) return y_.data() + row;
    copy(block_on_host_.data(), y_.data() + row, width);
    gpu_->wait_for_kernels();
    return block_on_host_.data();
  }

  // x := U^-1 x
  void solve(std::int64_t row, std::int64_t column, std::int64_t width, double* x) {
    const double* u = matrix_.at(row, column);
    if (gpu_ == nullptr) return blas_.solve_upper(width, u, matrix_.stride(), x);
    std::copy_n(x, width, block_on_host_.data());
    copy(block_.data(), block_on_host_.data(), width);
    gpu_->launch(KernelWork::triangular_solve(width, 1, DRYFLY_FP64),
                 [width, u, stride = matrix_.stride(), x_there = block_.data(), blas = blas_.of(WorkOf::kernel)] {
                   blas.solve_upper(width, u, stride, x_there);
                 });
    copy(block_on_host_.data(), block_.data(), width);
    gpu_->wait_for_kernels();
    std::copy_n(block_on_host_.data(), width, x);
  }

  // The first `rows` rows of y := y - U x
  void subtract(std::int64_t rows, std::int64_t column, std::int64_t width, const double* x) {
    const double* u = matrix_.at(0, column);
    if (gpu_ == nullptr) return subtract_product(rows, width, u, matrix_.stride(), x, y_.data(), WorkOf::fastest);
    if (rows == 0) return;
    gpu_->wait_for_kernels();  // the last of which may still be copying from the pinned memory
    std::copy_n(x, width, block_on_host_.data());
    copy(block_.data(), block_on_host_.data(), width);
    gpu_->launch(KernelWork::product(rows, 1, width, DRYFLY_FP64),
                 [rows, width, u, stride = matrix_.stride(), x_there = block_.data(), y = y_.data()] {
                   subtract_product(rows, width, u, stride, x_there, y, WorkOf::kernel);
                 });
  }

 private:
  static std::int64_t bytes_of(std::int64_t doubles) { return doubles * static_cast<std::int64_t>(sizeof(double)); }
  void copy(double* to, const double* from, std::int64_t count) {
    gpu_->copy(to, from, static_cast<std::size_t>(bytes_of(count)), Gpu::Order::among_kernels);
  }

  const Blas& blas_;
  const Matrix& matrix_;
  Gpu* gpu_;
  Doubles y_, block_, block_on_host_;
};

}  // namespace

std::vector<double> back_substitute(const Grid& grid, const Blas& blas, const Matrix& matrix) {
  const Cyclic &rows = matrix.rows(), &columns = matrix.columns();
  const std::int64_t order = matrix.order(), block = matrix.block();
  Open open(blas, matrix, grid.column() == columns.owner(order));
  std::vector<double> x(static_cast<std::size_t>(order), 0.0), part(static_cast<std::size_t>(std::min(block, order)));
  for (std::int64_t index = (order + block - 1) / block; index-- > 0;) {
    const std::int64_t column = index * block, width = std::min(block, order - column);
    const int owner_row = rows.owner(column), owner_column = columns.owner(column);
    double* solution = x.data() + column;
    const std::int64_t row = rows.below(column), local_column = columns.below(column);
    if (grid.row() == owner_row) {
      MPI_Reduce(open.read(row, width), part.data(), static_cast<int>(width), MPI_DOUBLE, MPI_SUM, owner_column,
                 grid.along_row());
      if (grid.column() == owner_column) {
        open.solve(row, local_column, width, part.data());
        std::copy_n(part.begin(), width, solution);
      }
    }
    if (grid.column() != owner_column) continue;
    MPI_Bcast(solution, static_cast<int>(width), MPI_DOUBLE, owner_row, grid.along_column());
    open.subtract(row, local_column, width, solution);
  }
  // Each process of a column has its part; the columns' parts are put together.
  sum_over(x, grid.along_row());
  return x;
}

Residual check(const Grid& grid, const Matrix& matrix, const Generator& generator, const std::vector<double>& x) {
  const Cyclic &rows = matrix.rows(), &columns = matrix.columns();
  const std::int64_t local_rows = rows.size(), local_columns = columns.size();
  const auto size = static_cast<std::size_t>(local_rows);
  std::vector<double> difference(size, 0.0), row_sums(size, 0.0), right(size, 0.0), stripe(size * kStripe);
  std::vector<double> column_sums(static_cast<std::size_t>(local_columns), 0.0);
  for (std::int64_t first = 0; first < local_columns; first += kStripe) {
    const std::int64_t count = std::min(kStripe, local_columns - first);
    matrix.generate_columns(generator, first, count, stripe.data(), local_rows);
    for (std::int64_t c = 0; c < count; ++c) {
      const std::int64_t column = columns.global(first + c);
      const double* a = stripe.data() + c * local_rows;
      if (column == matrix.order()) {
        for (std::size_t r = 0; r < size; ++r) right[r] = a[r];
        continue;
      }
      const double factor = x[static_cast<std::size_t>(column)];
      double sum = 0;
      for (std::size_t r = 0; r < size; ++r) {
        difference[r] -= a[r] * factor;
        row_sums[r] += std::fabs(a[r]);
        sum += std::fabs(a[r]);
      }
      column_sums[static_cast<std::size_t>(first + c)] = sum;
    }
  }
  for (std::size_t r = 0; r < size; ++r) difference[r] += right[r];
  sum_over(difference, grid.along_row());
  sum_over(row_sums, grid.along_row());
  sum_over(column_sums, grid.along_column());
  Residual result;
  result.difference = largest_of_all(largest(difference), grid.all());
  result.a_infinity = largest_of_all(largest(row_sums), grid.all());
  result.a_one = largest_of_all(largest(column_sums), grid.all());
  result.b_infinity = largest_of_all(largest(right), grid.all());
  result.x_infinity = largest_of_all(largest(x), grid.all());
  const double scale = kRoundOff * (result.a_infinity * result.x_infinity + result.b_infinity);
  result.scaled = result.difference / scale / static_cast<double>(matrix.order());
  return result;
}

}  // namespace dryfly::hpl
