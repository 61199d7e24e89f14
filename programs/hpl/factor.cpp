#include "factor.hpp"

#include <algorithm>

#include "triangle.hpp"
#include "work.hpp"

namespace dryfly::hpl {
namespace {

constexpr int kExchangeTags = 512, kBroadcastTags = 1024;
// With several processes the product is made in pieces, between which MPI is called: small ones first, while a panel is
// on its way, then larger ones, because the library packs L2 anew for each. The pieces never depend on what has
// arrived, since the last bits of a product may depend on its shape.
constexpr std::int64_t kFirstPiece = 512, kGrowth = 3;

std::size_t bytes_of(std::int64_t doubles) { return static_cast<std::size_t>(doubles) * sizeof(double); }

}  // namespace

// As Factorisation::update divides them.
std::int64_t columns_of_part(const Cyclic& columns, int split) {
  return std::min(columns.size(), std::max(columns.size() / split + 1, 2 * columns.block));
}

Factorisation::Factorisation(const Grid& grid, const Blas& blas, const FactorOptions& options, Matrix& matrix)
    : grid_(grid),
      blas_(blas),
      panel_blas_(blas.of(matrix.gpu() != nullptr ? WorkOf::processors : WorkOf::fastest)),
      options_(options),
      matrix_(matrix),
      gpu_(matrix.gpu()),
      factor_(grid, panel_blas_, options.panel) {
  for (int i = 0; i <= options.depth; ++i) panels_.emplace_back(grid, matrix, options.transfers);
  const std::int64_t widest = std::min(matrix.block(), matrix.order());
  const std::int64_t columns = gpu_ != nullptr ? columns_of_part(matrix.columns(), options.split) : 0;
  for (int i = 0; i < 2; ++i) {
    if (gpu_ != nullptr && grid.rows() > 1)
      exchanges_.emplace_back(grid, options.swap, times_, gpu_, options.transfers, widest, columns);
    else
      exchanges_.emplace_back(grid, options.swap, times_);
  }
  if (gpu_ == nullptr) return;
  lists_ = RowListsOnGpu(gpu_, widest);
  panel_rows_ = Doubles(column_stride(matrix.rows().size(), 8) * widest, gpu_, Gpu::Place::pinned);
  up_to_date_ = gpu_->new_mark();
  products_ = gpu_->new_mark();
}

std::int64_t Factorisation::blocks() const { return (matrix_.order() + matrix_.block() - 1) / matrix_.block(); }

std::int64_t Factorisation::elements() const {
  std::int64_t sum = 0;
  for (const Panel& each : panels_) sum += each.elements();
  for (const RowExchange& each : exchanges_) sum += each.elements();
  return sum;
}

bool Factorisation::allocated() const {
  return std::all_of(panels_.begin(), panels_.end(), [](const Panel& each) { return each.used_top() != nullptr; }) &&
         std::all_of(exchanges_.begin(), exchanges_.end(), [&](const RowExchange& each) {
           return gpu_ == nullptr || grid_.rows() == 1 || each.u() != nullptr;
         });
}

void Factorisation::run(std::int64_t first_step, const AfterStep& after_step) {
  const std::int64_t count = blocks();
  if (first_step == 0)
    for (std::int64_t ahead = 0; ahead < std::min<std::int64_t>(options_.depth, count); ++ahead) {
      bring_up_to_date(ahead, 0);
      factor_and_broadcast(ahead);
    }
  const bool beside_update = gpu_ != nullptr && options_.depth > 0;
  for (std::int64_t step = first_step; step < count; ++step) {
    const double begin = MPI_Wtime();
    const std::int64_t newest = step + options_.depth;
    if (newest < count) bring_up_to_date(newest, step);
    if (newest < count && !beside_update) factor_and_broadcast(newest);
    Panel& current = panel(step);
    receive(current);
    const std::int64_t done = std::min((std::min(newest, count - 1) + 1) * matrix_.block(), matrix_.order());
    const std::int64_t first = matrix_.columns().below(done);
    update(current, first, matrix_.columns().size() - first);
    if (gpu_ != nullptr) {
      const Timed timed(times_, Phase::gemm);
      gpu_->set(current.used);
    }
    if (newest < count && beside_update) factor_and_broadcast(newest);
    traffic_.poll();
    if (step + 1 == count) wait_for_products();
    times_.wall += MPI_Wtime() - begin;
    after_step(step + 1, std::min((step + 1) * matrix_.block(), matrix_.order()), times_);
    times_ = {};
  }
  traffic_.wait_for_all();
}

bool Factorisation::transfer_state(std::int64_t next_step, const Transfer& transfer) {
  const auto bytes = [](std::int64_t doubles) { return static_cast<std::size_t>(doubles) * sizeof(double); };
  bool good = transfer(matrix_.at(0, 0), bytes(matrix_.elements()));
  const std::int64_t newest = std::min(next_step + options_.depth, blocks());
  for (std::int64_t index = next_step; index < newest; ++index) {
    Panel& ahead = panel(index);
    ahead.set(grid_, matrix_, index, options_.transposed_top);
    if (grid_.column() == ahead.owner_column) {  // its rows are in the matrix
      ahead.low = matrix_.at(ahead.first_row, matrix_.columns().below(ahead.column));
      ahead.used_low_stride = matrix_.stride();
    }
    good = good && transfer(ahead.top(), bytes(ahead.message()));
  }
  return good;
}

// Brings panel `index` up to date with the panels from `oldest` on.
void Factorisation::bring_up_to_date(std::int64_t index, std::int64_t oldest) {
  Panel& next = panel(index);
  {
    const Timed timed(times_, Phase::broadcast);
    traffic_.wait(next.broadcast);  // of the panel that had this memory before
  }
  next.set(grid_, matrix_, index, options_.transposed_top);
  if (grid_.column() != next.owner_column) return;
  const std::int64_t first = matrix_.columns().below(next.column);
  for (std::int64_t each = oldest; each < index; ++each) {
    receive(panel(each));
    update(panel(each), first, next.width);
  }
  if (gpu_ == nullptr) return;
  const Timed timed(times_, Phase::to_host);
  const std::int64_t row = matrix_.rows().below(next.column), rows = matrix_.rows().size() - row;
  gpu_->set(up_to_date_);
  gpu_->let_copies_follow();
  gpu_->copy_columns(panel_rows_.data(), bytes_of(column_stride(rows, 8)), matrix_.at(row, first),
                     bytes_of(matrix_.stride()), bytes_of(rows), static_cast<std::size_t>(next.width),
                     Gpu::Order::beside);
}

// Factors panel `index` and begins to broadcast it.
void Factorisation::factor_and_broadcast(std::int64_t index) {
  Panel& next = panel(index);
  if (grid_.column() == next.owner_column) {
    if (gpu_ != nullptr) {
      factor_beside_gpu(next);
    } else {
      const Timed timed(times_, Phase::panel);
      const std::int64_t row = matrix_.rows().below(next.column);
      factor_.factor(next, matrix_, matrix_.at(row, matrix_.columns().below(next.column)), matrix_.stride());
    }
  } else if (gpu_ != nullptr) {
    const Timed timed(times_, Phase::gemm);
    gpu_->wait(next.used);  // before its memory is written to
  }
  {
    const Timed timed(times_, Phase::broadcast);
    plan_broadcast(next.broadcast, options_.broadcast, next.travelling(), next.message(), next.owner_column,
                   static_cast<int>(index % kBroadcastTags), grid_.along_row());
    traffic_.start(next.broadcast);
  }
  if (gpu_ != nullptr && grid_.column() == next.owner_column && options_.transfers == Transfers::staged)
    hand_to_gpu(next);
}

// By the processor, while the GPU does what was launched behind the panel's columns.
void Factorisation::factor_beside_gpu(Panel& panel) {
  {
    const Timed timed(times_, Phase::gemm);
    gpu_->wait(up_to_date_);
  }
  {
    const Timed timed(times_, Phase::to_host);
    gpu_->wait_for_copies();
  }
  const std::int64_t row = matrix_.rows().below(panel.column);
  const std::int64_t stride = column_stride(matrix_.rows().size() - row, 8);
  {
    const Timed timed(times_, Phase::panel);
    factor_.factor(panel, matrix_, panel_rows_.data(), stride);
  }
  if (grid_.row() == panel.owner_row) {  // U of these columns, for the end
    const Timed timed(times_, Phase::to_gpu);
    gpu_->copy_columns(matrix_.at(row, matrix_.columns().below(panel.column)), bytes_of(matrix_.stride()),
                       panel_rows_.data(), bytes_of(stride), bytes_of(panel.width),
                       static_cast<std::size_t>(panel.width), Gpu::Order::beside);
  }
  if (options_.transfers == Transfers::device) hand_to_gpu(panel);
}

// The kernels have the panel from here on.
void Factorisation::hand_to_gpu(Panel& panel) {
  const Timed timed(times_, Phase::to_gpu);
  gpu_->copy(panel.used_top(), panel.top(), bytes_of(panel.message()), Gpu::Order::beside);
  gpu_->wait_for_copies();
  panel.there = true;
}

void Factorisation::wait_for_products() {
  if (gpu_ == nullptr) return;
  const Timed timed(times_, Phase::gemm);
  gpu_->wait(products_);
}

void Factorisation::receive(Panel& panel) {
  if (grid_.column() == panel.owner_column) return;  // it need not have left yet
  {
    const Timed timed(times_, Phase::broadcast);
    traffic_.wait(panel.broadcast);
  }
  if (gpu_ == nullptr || panel.there) return;
  if (options_.transfers == Transfers::staged) return hand_to_gpu(panel);
  panel.there = true;
  if (grid_.rows() == 1) return;
  const Timed timed(times_, Phase::to_host);  // the pivots, by which the host plans the exchange of rows
  gpu_->copy(panel.pivots(), panel.used_top() + (panel.pivots() - panel.top()), bytes_of(panel.width),
             Gpu::Order::beside);
  gpu_->wait_for_copies();
}

void Factorisation::update(Panel& panel, std::int64_t first, std::int64_t count) {
  if (grid_.rows() == 1) return update_alone(panel, first, count);
  const RowMoves moves(grid_, matrix_, panel);
  RowLists lists{moves.gathered, moves.mine, moves.displaced, moves.arriving};
  wait_for_products();
  if (gpu_ != nullptr && count > 0) {
    const Timed timed(times_, Phase::swap);
    lists = lists_.put(moves);
  }
  const std::int64_t parts = std::max<std::int64_t>(1, std::min<std::int64_t>(options_.split, count / matrix_.block()));
  const auto begin = [&](std::int64_t part) { return first + count * part / parts; };
  const auto start = [&](std::int64_t part) {
    exchange_tag_ = (exchange_tag_ + 1) % kExchangeTags;
    wait_for_products();
    exchanges_[static_cast<std::size_t>(part % 2)].start(
        panel, moves, lists, matrix_, begin(part), begin(part + 1) - begin(part), 1 + 2 * exchange_tag_, traffic_);
  };
  start(0);
  for (std::int64_t part = 0; part < parts; ++part) {
    RowExchange& exchange = exchanges_[static_cast<std::size_t>(part % 2)];
    exchange.finish(moves, lists, matrix_, traffic_);
    if (part + 1 < parts) start(part + 1);
    const std::int64_t columns = begin(part + 1) - begin(part);
    update_part(panel, begin(part), columns, exchange.u(), exchange.u_stride(), options_.swap.transposed_u);
  }
}

void Factorisation::update_alone(Panel& panel, std::int64_t first, std::int64_t count) {
  const std::int64_t top = panel.first_row - panel.width;
  {
    const Timed timed(times_, Phase::swap);
    if (gpu_ != nullptr)
      exchange_rows_on_gpu(panel, matrix_, first, count);
    else
      exchange_rows_in_place(panel, matrix_, first, count);
  }
  update_part(panel, first, count, matrix_.at(top, first), matrix_.stride(), false);
}

// U := L1^-1 U, then A := A - L2 U; the owner of the top block keeps U.
void Factorisation::update_part(Panel& panel, std::int64_t first, std::int64_t count, const double* u,
                                std::int64_t u_stride, bool transposed_u) {
  auto* solved = const_cast<double*>(u);
  const std::int64_t width = panel.width;
  if (gpu_ != nullptr) return update_part_on_gpu(panel, first, count, solved, u_stride, transposed_u);
  {
    const Timed timed(times_, Phase::trsm);
    const UnitLowerSolver triangle(blas_, panel.top(), width, panel.transposed_top);
    triangle.solve(solved, count, u_stride, transposed_u);
  }
  if (grid_.rows() > 1 && grid_.row() == panel.owner_row) {
    const Timed timed(times_, Phase::swap);
    const bool wanted = memory_traffic(2 * static_cast<std::int64_t>(sizeof(double)) * count * width);
    for (std::int64_t c = 0; wanted && c < count; ++c) {
      double* target = matrix_.at(panel.first_row - width, first + c);
      for (std::int64_t r = 0; r < width; ++r) target[r] = transposed_u ? u[c + r * u_stride] : u[r + c * u_stride];
    }
  }
  const Timed timed(times_, Phase::gemm);
  const bool alone = grid_.rows() * grid_.columns() == 1;
  std::int64_t piece = alone ? count : kFirstPiece;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t columns = std::min(piece, count - done);
    blas_.subtract_product(panel.rows, columns, width, panel.low, panel.used_low_stride,
                           transposed_u ? u + done : u + done * u_stride, u_stride, transposed_u,
                           matrix_.at(panel.first_row, first + done), matrix_.stride());
    done += columns;
    piece *= kGrowth;
    traffic_.poll();
  }
}

// The same by kernels, which find everything where it is when their turn has come.
void Factorisation::update_part_on_gpu(Panel& panel, std::int64_t first, std::int64_t count, double* u,
                                       std::int64_t u_stride, bool transposed_u) {
  if (count == 0) return;
  const std::int64_t width = panel.width, rows = panel.rows, stride = matrix_.stride();
  const Blas blas = blas_.of(WorkOf::kernel);
  {
    const Timed timed(times_, Phase::trsm);
    gpu_->launch(KernelWork::triangular_solve(width, count, DRYFLY_FP64),
                 [=, top = panel.used_top(), transposed_top = panel.transposed_top] {
                   const UnitLowerSolver triangle(blas, top, width, transposed_top);
                   triangle.solve(u, count, u_stride, transposed_u);
                 });
  }
  if (grid_.rows() > 1 && grid_.row() == panel.owner_row) {
    const Timed timed(times_, Phase::swap);
    double* target = matrix_.at(panel.first_row - width, first);
    gpu_->launch(KernelWork::memory(2 * static_cast<std::int64_t>(sizeof(double)) * count * width), [=] {
      for (std::int64_t c = 0; c < count; ++c)
        for (std::int64_t r = 0; r < width; ++r)
          target[r + c * stride] = transposed_u ? u[c + r * u_stride] : u[r + c * u_stride];
    });
  }
  const Timed timed(times_, Phase::gemm);
  if (rows > 0)
    gpu_->launch(KernelWork::product(rows, count, width, DRYFLY_FP64),
                 [=, low = panel.low, low_stride = panel.used_low_stride, target = matrix_.at(panel.first_row, first)] {
                   blas.subtract_product(rows, count, width, low, low_stride, u, u_stride, transposed_u, target,
                                         stride);
                 });
  gpu_->set(products_);
  traffic_.poll();
}

}  // namespace dryfly::hpl
