#include "factor.hpp"

#include <algorithm>
#include <cstring>

#include "../hpl/work.hpp"
#include "diagonal.hpp"

namespace dryfly::mxp {
namespace {

using hpl::Phase;
using hpl::Timed;

hpl::Doubles room(std::int64_t bytes, hpl::Gpu* gpu, hpl::Gpu::Place place = hpl::Gpu::Place::device) {
  return hpl::Doubles((bytes + 7) / 8, gpu, place);
}

template <class Element>
void load_block(std::int64_t n, const Element* block, std::int64_t stride, float* target) {
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < n; ++i) target[i + j * n] = to_float(block[i + j * stride]);
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

Travelling::Travelling(std::int64_t bytes, hpl::Gpu* gpu, hpl::Transfers transfers, bool filled_by_host)
    : used(room(bytes, gpu)), staged(gpu != nullptr && transfers == hpl::Transfers::staged) {
  if (staged || (gpu != nullptr && filled_by_host)) on_host = room(bytes, gpu, hpl::Gpu::Place::pinned);
}

Factorisation::Factorisation(const hpl::Grid& grid, Kernel& kernel, Store& store, hpl::Transfers transfers)
    : grid_(grid), kernel_(kernel), store_(store), gpu_(store.gpu()) {
  const std::int64_t block = std::min(store.block(), store.order()), size = element_bytes(store.precision());
  for (Travelling& left : left_)
    left = Travelling(kernel.left_bytes(store.rows().size(), block), gpu_, transfers, false);
  right_ = Travelling(kernel.right_bytes(block, store.columns().size()), gpu_, transfers, false);
  small_ = Travelling(2 * block * block * size, gpu_, transfers, true);
  small_packed_ = room(std::max(kernel.left_bytes(block, block), kernel.right_bytes(block, block)), gpu_);
  if (gpu_ == nullptr) return;
  diagonal_on_gpu_ = hpl::Doubles(store.order(), gpu_, hpl::Gpu::Place::device);
  diagonal_on_host_ = hpl::Doubles(store.order(), gpu_, hpl::Gpu::Place::pinned);
  block_on_host_ = room(block * block * size, gpu_, hpl::Gpu::Place::pinned);
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
  const std::int64_t bytes = 2 * m * k * element_bytes(store_.precision());
  const auto pack = [=, this] { kernel_.pack_left(m, k, a, stride, packed); };
  if (gpu_ != nullptr)
    gpu_->launch(hpl::KernelWork::memory(bytes), pack);
  else if (hpl::memory_traffic(bytes))
    pack();
}

void Factorisation::pack_right(std::int64_t k, std::int64_t n, const void* b, void* packed, std::int64_t stride) {
  const std::int64_t bytes = 2 * k * n * element_bytes(store_.precision());
  const auto pack = [=, this] { kernel_.pack_right(k, n, b, stride, packed); };
  if (gpu_ != nullptr)
    gpu_->launch(hpl::KernelWork::memory(bytes), pack);
  else if (hpl::memory_traffic(bytes))
    pack();
}

void Factorisation::subtract(std::int64_t m, std::int64_t n, std::int64_t k, const void* left, const void* right,
                             void* c, Zeros zeros) {
  const auto multiply = [=, this] { kernel_.subtract(m, n, k, left, right, c, store_.stride(), zeros); };
  if (gpu_ == nullptr) {
    if (hpl::product(m, n, k, announced_precision())) multiply();
  } else if (m > 0 && n > 0) {
    gpu_->launch(hpl::KernelWork::product(m, n, k, announced_precision()), multiply);
  }
}

void Factorisation::wait_for_kernels() {
  if (gpu_ == nullptr) return;
  const Timed timed(times_, Phase::gemm);
  gpu_->wait_for_kernels();
}

void Factorisation::give(const Travelling& what, std::int64_t offset, std::int64_t bytes, bool from_here) {
  wait_for_kernels();
  if (!what.staged || !from_here) return;
  const Timed timed(times_, Phase::to_host);
  gpu_->copy(reinterpret_cast<char*>(what.on_host.data()) + offset,
             reinterpret_cast<const char*>(what.used.data()) + offset, static_cast<std::size_t>(bytes),
             hpl::Gpu::Order::beside);
  gpu_->wait_for_copies();
}

void Factorisation::take(const Travelling& what, std::int64_t offset, std::int64_t bytes) {
  if (!what.staged) return;
  const Timed timed(times_, Phase::to_gpu);
  gpu_->copy(reinterpret_cast<char*>(what.used.data()) + offset,
             reinterpret_cast<const char*>(what.on_host.data()) + offset, static_cast<std::size_t>(bytes),
             hpl::Gpu::Order::beside);
  gpu_->wait_for_copies();
}

void Factorisation::broadcast(const Travelling& what, std::int64_t offset, std::int64_t bytes, int root,
                              MPI_Comm along) {
  int rank = 0;
  MPI_Comm_rank(along, &rank);
  give(what, offset, bytes, rank == root && &what != &small_);  // the host has filled that
  {
    const Timed timed(times_, Phase::broadcast);
    // In units of four bytes, because counts are of 32 bits.
    MPI_Bcast(static_cast<char*>(what.moved()) + offset, static_cast<int>((bytes + 3) / 4), MPI_FLOAT, root, along);
  }
  if (rank != root) take(what, offset, bytes);
}

// From the GPU, with what of the diagonal belongs to it.
void Factorisation::take_diagonal_block(std::int64_t step) {
  wait_for_kernels();
  const Timed timed(times_, Phase::to_host);
  const std::int64_t n = width(step), first = step * store_.block(), size = element_bytes(store_.precision());
  const auto bytes = static_cast<std::size_t>(n * size);
  gpu_->copy_columns(block_on_host_.data(), bytes, store_.at(store_.rows().local(first), store_.columns().local(first)),
                     static_cast<std::size_t>(store_.stride() * size), bytes, static_cast<std::size_t>(n),
                     hpl::Gpu::Order::beside);
  gpu_->copy(diagonal_on_host_.data(), diagonal_on_gpu_.data() + first, static_cast<std::size_t>(n) * sizeof(double),
             hpl::Gpu::Order::beside);
  gpu_->wait_for_copies();
}

void Factorisation::factor_diagonal(std::int64_t step) {
  const std::int64_t n = width(step), first = step * store_.block();
  const bool on_gpu = gpu_ != nullptr;
  if (on_gpu) take_diagonal_block(step);
  {
    const Timed timed(times_, Phase::panel);
    const void* from =
        on_gpu ? block_on_host_.data() : store_.at(store_.rows().local(first), store_.columns().local(first));
    const double* diagonal = on_gpu ? diagonal_on_host_.data() : diagonal_.data() + first;
    const hpl::Doubles& target = on_gpu ? small_.on_host : small_.used;
    std::vector<float>& block = inverses_[step];
    block.resize(static_cast<std::size_t>(n * n));
    // Factored, and both factors inverted.
    if (hpl::arithmetic(4 * n * n * n / 3, DRYFLY_FP32, on_gpu ? hpl::WorkOf::processors : hpl::WorkOf::fastest)) {
      with_element(store_.precision(), [&]<class Element>(Element*) {
        load_block(n, static_cast<const Element*>(from), on_gpu ? n : store_.stride(), block.data());
      });
      for (std::int64_t i = 0; i < n; ++i)
        block[static_cast<std::size_t>(i * (n + 1))] = static_cast<float>(diagonal[i]);
      factor_and_invert(n, block.data());
      with_element(store_.precision(), [&]<class Element>(Element*) {
        auto* plain = reinterpret_cast<Element*>(target.data());
        spread_inverses(n, block.data(), plain, plain + n * n);
      });
    }
  }
  if (!on_gpu) return;
  const Timed timed(times_, Phase::to_gpu);
  gpu_->copy(small_.used.data(), small_.on_host.data(),
             static_cast<std::size_t>(2 * n * n * element_bytes(store_.precision())), hpl::Gpu::Order::beside);
  gpu_->wait_for_copies();
}

// U := L^-1 A in place, that is A - (I - L^-1) A, and packed for the update.
void Factorisation::upper_panel(std::int64_t step) {
  const std::int64_t n = width(step), columns = columns_after(step);
  if (columns > 0) {
    const Timed timed(times_, Phase::trsm);
    void* rows = store_.at(store_.rows().local(step * store_.block()), store_.columns().below(end(step)));
    pack_right(n, columns, rows, right_.used.data(), store_.stride());
    pack_left(n, n, small_.used.data(), small_packed_.data(), n);
    subtract(n, columns, n, small_packed_.data(), right_.used.data(), rows, Zeros::above_left_diagonal);
    pack_right(n, columns, rows, right_.used.data(), store_.stride());
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
    pack_right(n, n, reinterpret_cast<const char*>(small_.used.data()) + n * n * size, small_packed_.data(), n);
    const auto clear = [=, this] {
      for (std::int64_t j = 0; j < n; ++j)
        std::memset(store_.at(first, column + j), 0, static_cast<std::size_t>(rows * size));
    };
    if (gpu_ != nullptr)
      gpu_->launch(hpl::KernelWork::memory(rows * n * size), clear);
    else if (!hpl::numerics_skipped())
      clear();
    subtract(rows, n, n, left(step), small_packed_.data(), panel, Zeros::below_right_diagonal);
    pack_left(rows, n, panel, left(step), store_.stride());
  }
}

void Factorisation::update_diagonal(std::int64_t step) {
  hpl::KernelWork work;
  bool wanted = false;
  for (std::int64_t later = step + 1; later < store_.blocks(); ++later) {
    if (owner_row(later) != grid_.row() || owner_column(later) != grid_.column()) continue;
    const hpl::KernelWork one = hpl::KernelWork::product(width(later), 1, width(step), announced_precision());
    work = {one.precision, work.operations + one.operations, work.bytes + one.bytes};
    wanted = gpu_ != nullptr || hpl::product(width(later), 1, width(step), announced_precision());
  }
  if (!wanted) return;
  if (gpu_ == nullptr) return subtract_from_diagonal(step, diagonal_.data());
  gpu_->launch(work, [=, this] { subtract_from_diagonal(step, diagonal_on_gpu_.data()); });
}

void Factorisation::subtract_from_diagonal(std::int64_t step, double* diagonal) const {
  const std::int64_t block = store_.block();
  std::vector<double> sums(static_cast<std::size_t>(block));
  for (std::int64_t later = step + 1; later < store_.blocks(); ++later) {
    if (owner_row(later) != grid_.row() || owner_column(later) != grid_.column()) continue;
    const std::int64_t first = later * block;
    kernel_.diagonal_products(store_.rows().local(first) - store_.rows().below(end(step)),
                              store_.columns().local(first) - store_.columns().below(end(step)), width(later),
                              width(step), rows_below(step), left(step), right_.used.data(), sums.data());
    for (std::int64_t i = 0; i < width(later); ++i) diagonal[first + i] -= sums[static_cast<std::size_t>(i)];
  }
}

void Factorisation::prepare(std::int64_t step) {
  const int row = owner_row(step), column = owner_column(step);
  const bool my_row = grid_.row() == row, my_column = grid_.column() == column;
  if (my_row && my_column) factor_diagonal(step);
  if (end(step) == store_.order()) return;
  const std::int64_t n = width(step), bytes = n * n * element_bytes(store_.precision());
  if (my_column) {
    broadcast(small_, bytes, bytes, row, grid_.along_column());
    left_panel(step);
  }
  const std::int64_t left_bytes = kernel_.left_bytes(rows_below(step), n);
  give(left_of(step), 0, left_bytes, my_column);
  const Timed timed(times_, Phase::broadcast);
  MPI_Ibcast(left_of(step).moved(), static_cast<int>(left_bytes / 4), MPI_FLOAT, column, grid_.along_row(),
             &left_under_way_);
}

void Factorisation::wait_for_left() {
  const Timed timed(times_, Phase::broadcast);
  MPI_Wait(&left_under_way_, MPI_STATUS_IGNORE);
}

void Factorisation::update_columns(std::int64_t step, std::int64_t first, std::int64_t count) {
  const Timed timed(times_, Phase::gemm);
  const std::int64_t n = width(step);
  subtract(rows_below(step), count, n, left(step),
           reinterpret_cast<const char*>(right_.used.data()) + kernel_.right_offset(n, first),
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
    count = gpu_ != nullptr ? columns - done : std::min(kPart, columns - done);
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
              transfer(diagonal_.data(), diagonal_.size() * sizeof(double)) && all(small_.used) &&
              all(left_of(next_step).used);
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
    if (gpu_ != nullptr) {
      const Timed timed(times_, Phase::to_gpu);
      std::copy(diagonal.begin(), diagonal.end(), diagonal_on_host_.data());
      gpu_->copy(diagonal_on_gpu_.data(), diagonal_on_host_.data(), diagonal.size() * sizeof(double),
                 hpl::Gpu::Order::beside);
      gpu_->wait_for_copies();
    }
    prepare(0);
  }
  for (std::int64_t step = first; step < store_.blocks(); ++step) {
    if (end(step) < store_.order()) {
      const std::int64_t n = width(step), inverse_bytes = n * n * element_bytes(store_.precision());
      const int row = owner_row(step);
      wait_for_left();
      if (grid_.column() != owner_column(step)) take(left_of(step), 0, kernel_.left_bytes(rows_below(step), n));
      if (grid_.row() == row) {
        broadcast(small_, 0, inverse_bytes, owner_column(step), grid_.along_row());
        upper_panel(step);
      }
      broadcast(right_, 0, kernel_.right_bytes(n, columns_after(step)), row, grid_.along_column());
      update(step);
    }
    if (step + 1 == store_.blocks()) wait_for_kernels();
    const double now = MPI_Wtime();
    times_.wall = now - begin;
    after_step(step + 1, end(step), times_);
    times_ = {};
    begin = now;
  }
}

}  // namespace dryfly::mxp
