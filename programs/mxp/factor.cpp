#include "factor.hpp"

#include <algorithm>
#include <cstring>

#include "../hpl/work.hpp"
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
  for (hpl::Doubles& left : left_) left = room(kernel.left_bytes(store.rows().size(), block));
  right_ = room(kernel.right_bytes(block, store.columns().size()));
  small_ = room(2 * block * block * element_bytes(store.precision()));
  small_packed_ = room(std::max(kernel.left_bytes(block, block), kernel.right_bytes(block, block)));
}

double Factorisation::bytes() const {
  std::int64_t doubles = left_[0].count() + left_[1].count() + right_.count() + small_.count() + small_packed_.count();
  for (const auto& [block, values] : inverses_) doubles += static_cast<std::int64_t>(values.size()) / 2;
  return 8.0 * static_cast<double>(doubles);
}

int Factorisation::announced_precision() const {
  return store_.precision() == Precision::fp32 ? DRYFLY_FP32 : DRYFLY_HALF;
}

void Factorisation::pack_left(std::int64_t m, std::int64_t k, const void* a, void* packed, std::int64_t stride) {
  if (hpl::memory_traffic(2 * m * k * element_bytes(store_.precision()))) kernel_.pack_left(m, k, a, stride, packed);
}

void Factorisation::pack_right(std::int64_t k, std::int64_t n, const void* b, void* packed, std::int64_t stride) {
  if (hpl::memory_traffic(2 * k * n * element_bytes(store_.precision()))) kernel_.pack_right(k, n, b, stride, packed);
}

void Factorisation::subtract(std::int64_t m, std::int64_t n, std::int64_t k, const void* left, const void* right,
                             void* c, Zeros zeros) {
  if (hpl::product(m, n, k, announced_precision())) kernel_.subtract(m, n, k, left, right, c, store_.stride(), zeros);
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
  if (!hpl::arithmetic(4 * n * n * n / 3, DRYFLY_FP32)) return;  // factored, and both factors inverted
  with_element(store_.precision(),
               [&]<class Element>(Element*) { load_block<Element>(n, store_, row, column, block.data()); });
  for (std::int64_t i = 0; i < n; ++i)
    block[static_cast<std::size_t>(i * (n + 1))] = static_cast<float>(diagonal_[static_cast<std::size_t>(first + i)]);
  factor_and_invert(n, block.data());
  with_element(store_.precision(), [&]<class Element>(Element*) {
    auto* plain = reinterpret_cast<Element*>(small_.data());
    spread_inverses(n, block.data(), plain, plain + n * n);
  });
}

// U := L^-1 A in place, that is A - (I - L^-1) A, and packed for the update.
void Factorisation::upper_panel(std::int64_t step) {
  const std::int64_t n = width(step), columns = columns_after(step);
  if (columns > 0) {
    const Timed timed(times_, Phase::trsm);
    void* rows = store_.at(store_.rows().local(step * store_.block()), store_.columns().below(end(step)));
    pack_right(n, columns, rows, right_.data(), store_.stride());
    pack_left(n, n, small_.data(), small_packed_.data(), n);
    subtract(n, columns, n, small_packed_.data(), right_.data(), rows, Zeros::above_left_diagonal);
    pack_right(n, columns, rows, right_.data(), store_.stride());
  }
}

// L := A U^-1 in place, that is 0 - A (-U^-1), and packed for the update.
void Factorisation::left_panel(std::int64_t step) {
  const std::int64_t n = width(step), rows = rows_below(step);
  if (rows > 0) {
    const Timed timed(times_, Phase::trsm);
    const std::int64_t size = element_bytes(store_.precision());
    const std::int64_t column = store_.columns().local(step * store_.block());
    const std::int64_t first = store_.rows().below(end(step));
    void* panel = store_.at(first, column);
    pack_left(rows, n, panel, left(step), store_.stride());
    pack_right(n, n, reinterpret_cast<const char*>(small_.data()) + n * n * size, small_packed_.data(), n);
    for (std::int64_t j = 0; j < n && !hpl::numerics_skipped(); ++j)
      std::memset(store_.at(first, column + j), 0, static_cast<std::size_t>(rows * size));
    subtract(rows, n, n, left(step), small_packed_.data(), panel, Zeros::below_right_diagonal);
    pack_left(rows, n, panel, left(step), store_.stride());
  }
}

void Factorisation::update_diagonal(std::int64_t step) {
  const std::int64_t block = store_.block();
  std::vector<double> sums(static_cast<std::size_t>(block));
  for (std::int64_t later = step + 1; later < store_.blocks(); ++later) {
    if (owner_row(later) != grid_.row() || owner_column(later) != grid_.column()) continue;
    const std::int64_t first = later * block;
    if (!hpl::product(width(later), 1, width(step), announced_precision())) continue;
    kernel_.diagonal_products(store_.rows().local(first) - store_.rows().below(end(step)),
                              store_.columns().local(first) - store_.columns().below(end(step)), width(later),
                              width(step), rows_below(step), left(step), right_.data(), sums.data());
    for (std::int64_t i = 0; i < width(later); ++i)
      diagonal_[static_cast<std::size_t>(first + i)] -= sums[static_cast<std::size_t>(i)];
  }
}

void Factorisation::prepare(std::int64_t step) {
  const int row = owner_row(step), column = owner_column(step);
  const bool my_row = grid_.row() == row, my_column = grid_.column() == column;
  if (my_row && my_column) factor_diagonal(step);
  if (end(step) == store_.order()) return;
  const std::int64_t n = width(step), bytes = n * n * element_bytes(store_.precision());
  if (my_column) {
    broadcast(reinterpret_cast<char*>(small_.data()) + bytes, bytes, row, grid_.along_column());
    left_panel(step);
  }
  const Timed timed(times_, Phase::broadcast);
  const int count = static_cast<int>(kernel_.left_bytes(rows_below(step), n) / 4);
  MPI_Ibcast(left(step), count, MPI_FLOAT, column, grid_.along_row(), &left_under_way_);
}

void Factorisation::wait_for_left() {
  const Timed timed(times_, Phase::broadcast);
  MPI_Wait(&left_under_way_, MPI_STATUS_IGNORE);
}

void Factorisation::update_columns(std::int64_t step, std::int64_t first, std::int64_t count) {
  const Timed timed(times_, Phase::gemm);
  const std::int64_t n = width(step);
  subtract(rows_below(step), count, n, left(step),
           reinterpret_cast<const char*>(right_.data()) + kernel_.right_offset(n, first),
           store_.at(store_.rows().below(end(step)), store_.columns().below(end(step)) + first), Zeros::none);
}

// The columns of the next step first, then that step's L, then the rest in parts: between them MPI can go on.
void Factorisation::update(std::int64_t step) {
  constexpr std::int64_t kPart = 256;
  const std::int64_t columns = columns_after(step);
  {
    const Timed timed(times_, Phase::gemm);
    update_diagonal(step);
  }
  const bool mine = grid_.column() == owner_column(step + 1);
  std::int64_t done = mine ? width(step + 1) : 0;
  if (kernel_.right_offset(width(step), done) < 0) done = columns;  // the kernel cannot begin there
  update_columns(step, 0, done);
  prepare(step + 1);
  for (std::int64_t count; done < columns; done += count) {
    count = std::min(kPart, columns - done);
    update_columns(step, done, count);
    int over = 0;
    if (left_under_way_ != MPI_REQUEST_NULL) MPI_Test(&left_under_way_, &over, MPI_STATUS_IGNORE);
  }
}

// A with what is factored of it, and what has been made ahead: the next step's diagonal block and its L.
bool Factorisation::transfer_state(std::int64_t next_step, const Transfer& transfer) {
  const auto all = [&](const hpl::Doubles& memory) {
    return transfer(memory.data(), static_cast<std::size_t>(memory.count()) * sizeof(double));
  };
  diagonal_.resize(static_cast<std::size_t>(store_.order()));
  bool good = transfer(store_.at(0, 0), static_cast<std::size_t>(store_.bytes())) &&
              transfer(diagonal_.data(), diagonal_.size() * sizeof(double)) && all(small_) &&
              all(left_[static_cast<std::size_t>(next_step % 2)]);
  for (std::int64_t step = 0; step <= std::min(next_step, store_.blocks() - 1); ++step) {
    if (owner_row(step) != grid_.row() || owner_column(step) != grid_.column()) continue;
    std::vector<float>& block = inverses_[step];
    block.resize(static_cast<std::size_t>(width(step) * width(step)));
    good = good && transfer(block.data(), block.size() * sizeof(float));
  }
  return good;
}

void Factorisation::run(const std::vector<double>& diagonal, std::int64_t first, const AfterStep& after_step) {
  times_ = {};
  double begin = MPI_Wtime();
  if (first == 0) {
    diagonal_ = diagonal;
    prepare(0);
  }
  for (std::int64_t step = first; step < store_.blocks(); ++step) {
    if (end(step) < store_.order()) {
      const std::int64_t n = width(step), inverse_bytes = n * n * element_bytes(store_.precision());
      const int row = owner_row(step);
      wait_for_left();
      if (grid_.row() == row) {
        broadcast(small_.data(), inverse_bytes, owner_column(step), grid_.along_row());
        upper_panel(step);
      }
      broadcast(right_.data(), kernel_.right_bytes(n, columns_after(step)), row, grid_.along_column());
      update(step);
    }
    const double now = MPI_Wtime();
    times_.wall = now - begin;
    after_step(step + 1, end(step), times_);
    times_ = {};
    begin = now;
  }
}

}  // namespace dryfly::mxp
