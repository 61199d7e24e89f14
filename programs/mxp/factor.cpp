#include "factor.hpp"

#include <algorithm>
#include <cstring>

#include "diagonal.hpp"

namespace dryfly::mxp {
namespace {

using hpl::Phase;
using hpl::Timed;

hpl::Doubles room(std::int64_t bytes) { return hpl::Doubles((bytes + 7) / 8); }

template <class Element>
void load_block(std::int64_t n, const Store& store, std::int64_t row, std::int64_t column, float* target) {
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < n; ++i)
      target[i + j * n] = to_float(static_cast<const Element*>(store.at(row, column + j))[i]);
}

// I - L^-1, the factor of the rows to be subtracted from them, and -U^-1.
template <class Element>
void spread_inverses(std::int64_t n, const float* inverses, Element* lower, Element* upper) {
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < n; ++i) {
      lower[i + j * n] = from_float<Element>(i > j ? -inverses[i + j * n] : 0.0f);
      upper[i + j * n] = from_float<Element>(i <= j ? -inverses[i + j * n] : 0.0f);
    }
}

}  // namespace

Factorisation::Factorisation(const hpl::Grid& grid, Kernel& kernel, Store& store)
    : grid_(grid), kernel_(kernel), store_(store) {
  const std::int64_t block = std::min(store.block(), store.order());
  left_ = room(kernel.left_bytes(store.rows().size(), block));
  right_ = room(kernel.right_bytes(block, store.columns().size()));
  small_ = room(2 * block * block * element_bytes(store.precision()));
  small_packed_ = room(std::max(kernel.left_bytes(block, block), kernel.right_bytes(block, block)));
}

double Factorisation::bytes() const {
  std::int64_t doubles = left_.count() + right_.count() + small_.count() + small_packed_.count();
  for (const auto& [block, values] : inverses_) doubles += static_cast<std::int64_t>(values.size()) / 2;
  return 8.0 * static_cast<double>(doubles);
}

void Factorisation::broadcast(void* data, std::int64_t bytes, int root, MPI_Comm along) {
  const Timed timed(times_, Phase::broadcast);
  // In units of four bytes, because counts are of 32 bits.
  MPI_Bcast(data, static_cast<int>((bytes + 3) / 4), MPI_FLOAT, root, along);
}

void Factorisation::factor_diagonal(std::int64_t step) {
  const Timed timed(times_, Phase::panel);
  const std::int64_t n = width(step), first = step * store_.block();
  const std::int64_t row = store_.rows().local(first), column = store_.columns().local(first);
  std::vector<float>& block = inverses_[step];
  block.resize(static_cast<std::size_t>(n * n));
  if (store_.precision() == Precision::bf16)
    load_block<Bf16>(n, store_, row, column, block.data());
  else
    load_block<float>(n, store_, row, column, block.data());
  for (std::int64_t i = 0; i < n; ++i)
    block[static_cast<std::size_t>(i * (n + 1))] = static_cast<float>(diagonal_[static_cast<std::size_t>(first + i)]);
  factor_and_invert(n, block.data());
  void* plain = small_.data();
  if (store_.precision() == Precision::bf16)
    spread_inverses(n, block.data(), static_cast<Bf16*>(plain), static_cast<Bf16*>(plain) + n * n);
  else
    spread_inverses(n, block.data(), static_cast<float*>(plain), static_cast<float*>(plain) + n * n);
}

// U := L^-1 A in place, that is A - (I - L^-1) A, and packed for the update.
void Factorisation::upper_panel(std::int64_t step) {
  const std::int64_t n = width(step), columns = store_.columns().size() - columns_done_;
  if (columns > 0) {
    const Timed timed(times_, Phase::trsm);
    void* rows = store_.at(store_.rows().local(step * store_.block()), columns_done_);
    kernel_.pack_right(n, columns, rows, store_.stride(), right_.data());
    kernel_.pack_left(n, n, small_.data(), n, small_packed_.data());
    kernel_.subtract(n, columns, n, small_packed_.data(), right_.data(), rows, store_.stride(),
                     Zeros::above_left_diagonal);
    kernel_.pack_right(n, columns, rows, store_.stride(), right_.data());
  }
}

// L := A U^-1 in place, that is 0 - A (-U^-1), and packed for the update.
void Factorisation::left_panel(std::int64_t step) {
  const std::int64_t n = width(step), rows = store_.rows().size() - rows_done_;
  if (rows > 0) {
    const Timed timed(times_, Phase::trsm);
    const std::int64_t size = element_bytes(store_.precision());
    const std::int64_t column = store_.columns().local(step * store_.block());
    void* panel = store_.at(rows_done_, column);
    kernel_.pack_left(rows, n, panel, store_.stride(), left_.data());
    kernel_.pack_right(n, n, reinterpret_cast<const char*>(small_.data()) + n * n * size, n, small_packed_.data());
    for (std::int64_t j = 0; j < n; ++j)
      std::memset(store_.at(rows_done_, column + j), 0, static_cast<std::size_t>(rows * size));
    kernel_.subtract(rows, n, n, left_.data(), small_packed_.data(), panel, store_.stride(),
                     Zeros::below_right_diagonal);
    kernel_.pack_left(rows, n, panel, store_.stride(), left_.data());
  }
}

void Factorisation::update_diagonal(std::int64_t step) {
  const std::int64_t block = store_.block();
  std::vector<double> sums(static_cast<std::size_t>(block));
  for (std::int64_t later = step + 1; later < store_.blocks(); ++later) {
    if (owner_row(later) != grid_.row() || owner_column(later) != grid_.column()) continue;
    const std::int64_t first = later * block;
    kernel_.diagonal_products(store_.rows().local(first) - rows_done_, store_.columns().local(first) - columns_done_,
                              width(later), width(step), store_.rows().size() - rows_done_, left_.data(), right_.data(),
                              sums.data());
    for (std::int64_t i = 0; i < width(later); ++i)
      diagonal_[static_cast<std::size_t>(first + i)] -= sums[static_cast<std::size_t>(i)];
  }
}

void Factorisation::run(const std::vector<double>& diagonal, const AfterStep& after_step) {
  diagonal_ = diagonal;
  for (std::int64_t step = 0; step < store_.blocks(); ++step) {
    times_ = {};
    const double begin = MPI_Wtime();
    const std::int64_t n = width(step), end = step * store_.block() + n;
    const int row = owner_row(step), column = owner_column(step);
    const bool my_row = grid_.row() == row, my_column = grid_.column() == column;
    rows_done_ = store_.rows().below(end), columns_done_ = store_.columns().below(end);
    if (my_row && my_column) factor_diagonal(step);
    if (end < store_.order()) {
      const std::int64_t inverse_bytes = n * n * element_bytes(store_.precision());
      char* inverse = reinterpret_cast<char*>(small_.data());
      if (my_row) broadcast(inverse, inverse_bytes, column, grid_.along_row());
      if (my_column) broadcast(inverse + inverse_bytes, inverse_bytes, row, grid_.along_column());
      const std::int64_t rows = store_.rows().size() - rows_done_, columns = store_.columns().size() - columns_done_;
      if (my_column) left_panel(step);
      broadcast(left_.data(), kernel_.left_bytes(rows, n), column, grid_.along_row());
      if (my_row) upper_panel(step);
      broadcast(right_.data(), kernel_.right_bytes(n, columns), row, grid_.along_column());
      const Timed timed(times_, Phase::gemm);
      update_diagonal(step);
      kernel_.subtract(rows, columns, n, left_.data(), right_.data(), store_.at(rows_done_, columns_done_),
                       store_.stride(), Zeros::none);
    }
    times_.wall = MPI_Wtime() - begin;
    after_step(end, times_);
  }
}

}  // namespace dryfly::mxp
