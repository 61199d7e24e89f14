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

}  // namespace

Factorisation::Factorisation(const Grid& grid, const Blas& blas, const FactorOptions& options, Matrix& matrix)
    : grid_(grid), blas_(blas), options_(options), matrix_(matrix), factor_(grid, blas, options.panel) {
  for (int i = 0; i <= options.depth; ++i) panels_.emplace_back(grid, matrix);
  for (int i = 0; i < 2; ++i) exchanges_.emplace_back(grid, options.swap);
}

std::int64_t Factorisation::blocks() const { return (matrix_.order() + matrix_.block() - 1) / matrix_.block(); }

std::int64_t Factorisation::elements() const {
  std::int64_t sum = 0;
  for (const Panel& each : panels_) sum += each.elements();
  for (const RowExchange& each : exchanges_) sum += each.elements();
  return sum;
}

void Factorisation::run(std::int64_t first_step, const AfterStep& after_step) {
  const std::int64_t count = blocks();
  if (first_step == 0)
    for (std::int64_t ahead = 0; ahead < std::min<std::int64_t>(options_.depth, count); ++ahead) prepare(ahead, 0);
  for (std::int64_t step = first_step; step < count; ++step) {
    const double begin = MPI_Wtime();
    const std::int64_t newest = step + options_.depth;
    if (newest < count) prepare(newest, step);
    Panel& current = panel(step);
    receive(current);
    const std::int64_t done = std::min((std::min(newest, count - 1) + 1) * matrix_.block(), matrix_.order());
    const std::int64_t first = matrix_.columns().below(done);
    update(current, first, matrix_.columns().size() - first);
    traffic_.poll();
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

// Brings panel `index` up to date with the panels from `oldest` on, factors it and begins to broadcast it.
void Factorisation::prepare(std::int64_t index, std::int64_t oldest) {
  Panel& next = panel(index);
  {
    const Timed timed(times_, Phase::broadcast);
    traffic_.wait(next.broadcast);  // of the panel that had this memory before
  }
  next.set(grid_, matrix_, index, options_.transposed_top);
  if (grid_.column() == next.owner_column) {
    const std::int64_t first = matrix_.columns().below(next.column);
    for (std::int64_t each = oldest; each < index; ++each) {
      receive(panel(each));
      update(panel(each), first, next.width);
    }
    const Timed timed(times_, Phase::panel);
    factor_.factor(next, matrix_);
  }
  const Timed timed(times_, Phase::broadcast);
  plan_broadcast(next.broadcast, options_.broadcast, next.top(), next.message(), next.owner_column,
                 static_cast<int>(index % kBroadcastTags), grid_.along_row());
  traffic_.start(next.broadcast);
}

void Factorisation::receive(Panel& panel) {
  if (grid_.column() == panel.owner_column) return;  // it need not have left yet
  const Timed timed(times_, Phase::broadcast);
  traffic_.wait(panel.broadcast);
}

void Factorisation::update(Panel& panel, std::int64_t first, std::int64_t count) {
  if (grid_.rows() == 1) return update_alone(panel, first, count);
  const RowMoves moves(grid_, matrix_, panel);
  const std::int64_t parts = std::max<std::int64_t>(1, std::min<std::int64_t>(options_.split, count / matrix_.block()));
  const auto begin = [&](std::int64_t part) { return first + count * part / parts; };
  const auto start = [&](std::int64_t part) {
    const Timed timed(times_, Phase::swap);
    exchange_tag_ = (exchange_tag_ + 1) % kExchangeTags;
    exchanges_[static_cast<std::size_t>(part % 2)].start(
        panel, moves, matrix_, begin(part), begin(part + 1) - begin(part), 1 + 2 * exchange_tag_, traffic_);
  };
  start(0);
  for (std::int64_t part = 0; part < parts; ++part) {
    RowExchange& exchange = exchanges_[static_cast<std::size_t>(part % 2)];
    {
      const Timed timed(times_, Phase::swap);
      traffic_.wait(exchange.schedule());
      exchange.finish(panel, moves, matrix_);
    }
    if (part + 1 < parts) start(part + 1);
    const std::int64_t columns = begin(part + 1) - begin(part);
    update_part(panel, begin(part), columns, exchange.u(), exchange.u_stride(), options_.swap.transposed_u);
  }
}

void Factorisation::update_alone(Panel& panel, std::int64_t first, std::int64_t count) {
  const std::int64_t top = panel.first_row - panel.width;
  {
    const Timed timed(times_, Phase::swap);
    exchange_rows_in_place(panel, matrix_, first, count);
  }
  update_part(panel, first, count, matrix_.at(top, first), matrix_.stride(), false);
}

// U := L1^-1 U, then A := A - L2 U; the owner of the top block keeps U.
void Factorisation::update_part(Panel& panel, std::int64_t first, std::int64_t count, const double* u,
                                std::int64_t u_stride, bool transposed_u) {
  auto* solved = const_cast<double*>(u);
  const std::int64_t width = panel.width;
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

}  // namespace dryfly::hpl
