#include "system.hpp"

#include <algorithm>
#include <cmath>

#include "../hpl/work.hpp"

#define DRYFLY_WIDEST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))

namespace dryfly::mxp {
namespace {

constexpr std::uint64_t kMultiplier = 6364136223846793005u;  // HPL's; hpl/generator.hpp
constexpr std::int64_t kPiece = 1024;                        // rows: a piece and its sums stay in the first cache
constexpr int kLanes = 16;
constexpr double kEpsilon = 0x1p-53;

struct Jump {
  std::uint64_t multiplier = 1, increment = 0;
};

Jump jump(std::int64_t steps) {
  Jump total, power{kMultiplier, 1};
  for (; steps != 0; steps >>= 1) {
    if (steps & 1) total = {total.multiplier * power.multiplier, total.increment * power.multiplier + power.increment};
    power = {power.multiplier * power.multiplier, power.increment * (power.multiplier + 1)};
  }
  return total;
}

// As Generator::fill, for a state that is known already.
template <double (*kToDouble)(std::uint64_t)>
[[gnu::always_inline]] inline void fill_by(std::uint64_t first, Jump ahead, std::int64_t count, double* target) {
  std::uint64_t state[kLanes];
  state[0] = first;
  for (int lane = 1; lane < kLanes; ++lane) state[lane] = kMultiplier * state[lane - 1] + 1;
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int lane = 0; lane < kLanes; ++lane) {
      target[i + lane] = 0.5 - kToDouble(state[lane]) * 0x1p-64;
      state[lane] = ahead.multiplier * state[lane] + ahead.increment;
    }
  for (int lane = 0; i < count; ++i, ++lane) target[i] = 0.5 - kToDouble(state[lane]) * 0x1p-64;
}

// With the widest instructions that there are; AVX-512 has one for the conversion.
[[gnu::always_inline]] inline double converted(std::uint64_t whole) { return static_cast<double>(whole); }
__attribute__((target("arch=x86-64-v4"))) void fill(std::uint64_t first, Jump ahead, std::int64_t count,
                                                    double* target) {
  fill_by<converted>(first, ahead, count, target);
}
__attribute__((target("arch=x86-64-v3"))) void fill(std::uint64_t first, Jump ahead, std::int64_t count,
                                                    double* target) {
  fill_by<hpl::Generator::to_double>(first, ahead, count, target);
}
__attribute__((target("default"))) void fill(std::uint64_t first, Jump ahead, std::int64_t count, double* target) {
  fill_by<hpl::Generator::to_double>(first, ahead, count, target);
}

DRYFLY_WIDEST void add_product(std::int64_t count, const double* values, double factor, double* sums) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += values[i] * factor;
}

DRYFLY_WIDEST void add_magnitudes(std::int64_t count, const double* values, double* sums) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += std::fabs(values[i]);
}

template <class Element>
void convert(std::int64_t count, const double* values, void* target) {
  for (std::int64_t i = 0; i < count; ++i)
    static_cast<Element*>(target)[i] = from_float<Element>(static_cast<float>(values[i]));
}

}  // namespace

void sum_everywhere(std::vector<double>& values, MPI_Comm all) {
  int rank = 0;
  MPI_Comm_rank(all, &rank);
  const int count = static_cast<int>(values.size());
  MPI_Reduce(rank == 0 ? MPI_IN_PLACE : values.data(), values.data(), count, MPI_DOUBLE, MPI_SUM, 0, all);
  MPI_Bcast(values.data(), count, MPI_DOUBLE, 0, all);
}

double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values)
    if (!(std::fabs(value) <= most)) most = std::fabs(value);
  return std::any_of(values.begin(), values.end(), [](double v) { return std::isnan(v); }) ? NAN : most;
}

Store::Store(const hpl::Grid& grid, std::int64_t order, std::int64_t block, Precision precision, hpl::Gpu* gpu)
    : rows_{order, block, grid.rows(), grid.row()},
      columns_{order, block, grid.columns(), grid.column()},
      precision_(precision),
      // Columns that begin at cache lines; for the cache, hpl's rule about pages holds in bytes.
      stride_(hpl::column_stride((rows_.size() * element_bytes(precision) + 7) / 8, 8) * 8 / element_bytes(precision)),
      gpu_(gpu),
      storage_((stride_ * columns_.size() * element_bytes(precision) + 7) / 8, gpu, hpl::Gpu::Place::device) {}

System::System(const hpl::Grid& grid, std::uint64_t seed, const Store& store)
    : grid_(grid), store_(store), seed_(seed), b_(static_cast<std::size_t>(store.order())), diagonal_(b_.size()) {
  const auto order = static_cast<std::uint64_t>(store.order());
  hpl::Generator(seed).fill(order * order, store.order(), b_.data());
  hpl::Gpu* gpu = store.gpu();
  if (gpu == nullptr) return;
  x_on_gpu_ = hpl::Doubles(store.order(), gpu, hpl::Gpu::Place::device);
  sums_on_gpu_ = hpl::Doubles(store.rows().size(), gpu, hpl::Gpu::Place::device);
  x_on_host_ = hpl::Doubles(store.order(), gpu, hpl::Gpu::Place::pinned);
  sums_on_host_ = hpl::Doubles(store.rows().size(), gpu, hpl::Gpu::Place::pinned);
}

void System::each_piece(const Visit& visit) const {
  const hpl::Cyclic &rows = store_.rows(), &columns = store_.columns();
  const hpl::Generator generator(seed_);
  const Jump lanes = jump(kLanes), next = jump(rows.count);
  const Jump next_block = jump(rows.count * ((columns.processes - 1) * columns.block + 1));
  const std::int64_t run = rows.processes == 1 ? rows.count : rows.block;  // rows that follow each other in A
  double values[kPiece];
  for (std::int64_t row = 0, count; row < rows.size(); row += count) {
    count = std::min({kPiece, run - row % run, rows.size() - row});
    const std::int64_t first = rows.global(row);
    std::uint64_t state = columns.size() == 0
                              ? 0
                              : generator.state_at(static_cast<std::uint64_t>(first + columns.global(0) * rows.count));
    for (std::int64_t column = 0; column < columns.size(); ++column) {
      fill(state, lanes, count, values);
      const std::int64_t diagonal = columns.global(column);
      if (diagonal >= first && diagonal < first + count)
        values[diagonal - first] = diagonal_[static_cast<std::size_t>(diagonal)];
      visit(row, column, count, values);
      const Jump& step = (column + 1) % columns.block == 0 ? next_block : next;
      state = step.multiplier * state + step.increment;
    }
  }
}

void System::generate() {
  const hpl::Cyclic& rows = store_.rows();
  std::vector<double> sums(static_cast<std::size_t>(rows.size())), all(diagonal_.size());
  std::fill(diagonal_.begin(), diagonal_.end(), 0.0);
  const auto make = [&] {
    each_piece([&](std::int64_t row, std::int64_t column, std::int64_t count, double* values) {
      add_magnitudes(count, values, sums.data() + row);
      with_element(store_.precision(),
                   [&]<class Element>(Element*) { convert<Element>(count, values, store_.at(row, column)); });
    });
  };
  if (hpl::Gpu* gpu = store_.gpu()) {
    gpu->launch(hpl::KernelWork::memory(static_cast<std::int64_t>(store_.bytes())), make);
    gpu->wait_for_kernels();
  } else {
    make();
  }
  for (std::size_t i = 0; i < sums.size(); ++i)
    all[static_cast<std::size_t>(rows.global(static_cast<std::int64_t>(i)))] = sums[i];
  sum_everywhere(all, grid_.all());
  diagonal_ = std::move(all);
  norm_ = 2 * largest(diagonal_);
}

void System::add_products(const double* x, double* sums) const {
  each_piece([&](std::int64_t row, std::int64_t column, std::int64_t count, double* values) {
    add_product(count, values, x[store_.columns().global(column)], sums + row);
  });
}

std::vector<double> System::product(const std::vector<double>& x) const {
  const hpl::Cyclic &rows = store_.rows(), &columns = store_.columns();
  std::vector<double> sums(static_cast<std::size_t>(rows.size())), all(x.size());
  // Each element is made where it is used: by about four operations, and two for the product.
  const std::int64_t operations = 6 * rows.size() * columns.size();
  if (hpl::Gpu* gpu = store_.gpu()) {
    using Order = hpl::Gpu::Order;
    std::copy(x.begin(), x.end(), x_on_host_.data());
    gpu->copy(x_on_gpu_.data(), x_on_host_.data(), x.size() * sizeof(double), Order::among_kernels);
    gpu->launch({DRYFLY_FP64, operations, 0}, [&] {
      std::fill_n(sums_on_gpu_.data(), sums.size(), 0.0);
      add_products(x_on_gpu_.data(), sums_on_gpu_.data());
    });
    gpu->copy(sums_on_host_.data(), sums_on_gpu_.data(), sums.size() * sizeof(double), Order::among_kernels);
    gpu->wait_for_kernels();
    if (!hpl::numerics_skipped()) std::copy_n(sums_on_host_.data(), sums.size(), sums.begin());
  } else if (hpl::arithmetic(operations, DRYFLY_FP64)) {
    add_products(x.data(), sums.data());
  }
  for (std::size_t i = 0; i < sums.size(); ++i)
    all[static_cast<std::size_t>(rows.global(static_cast<std::int64_t>(i)))] = sums[i];
  sum_everywhere(all, grid_.all());
  return all;
}

double System::scaled(const std::vector<double>& difference, const std::vector<double>& x) const {
  return largest(difference) / ((norm_ * largest(x) + largest(b_)) * kEpsilon * static_cast<double>(store_.order()));
}

}  // namespace dryfly::mxp
