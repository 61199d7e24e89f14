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
                      double* y) {
  if (rows == 0 || !product(rows, 1, columns, DRYFLY_FP64)) return;
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

}  // namespace

std::vector<double> back_substitute(const Grid& grid, const Blas& blas, const Matrix& matrix) {
  const Cyclic &rows = matrix.rows(), &columns = matrix.columns();
  const std::int64_t order = matrix.order(), block = matrix.block();
  std::vector<double> open(static_cast<std::size_t>(rows.size()), 0.0);  // my part of y minus what is known of U x
  if (grid.column() == columns.owner(order)) {
    const double* y = matrix.at(0, columns.local(order));
    std::copy_n(y, rows.size(), open.begin());
  }
  std::vector<double> x(static_cast<std::size_t>(order), 0.0), part(static_cast<std::size_t>(std::min(block, order)));
  for (std::int64_t index = (order + block - 1) / block; index-- > 0;) {
    const std::int64_t column = index * block, width = std::min(block, order - column);
    const int owner_row = rows.owner(column), owner_column = columns.owner(column);
    double* solution = x.data() + column;
    const std::int64_t row = rows.below(column), local_column = columns.below(column);
    if (grid.row() == owner_row) {
      MPI_Reduce(open.data() + row, part.data(), static_cast<int>(width), MPI_DOUBLE, MPI_SUM, owner_column,
                 grid.along_row());
      if (grid.column() == owner_column) {
        blas.solve_upper(width, matrix.at(row, local_column), matrix.stride(), part.data());
        std::copy_n(part.begin(), width, solution);
      }
    }
    if (grid.column() != owner_column) continue;
    MPI_Bcast(solution, static_cast<int>(width), MPI_DOUBLE, owner_row, grid.along_column());
    subtract_product(row, width, matrix.at(0, local_column), matrix.stride(), solution, open.data());
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
