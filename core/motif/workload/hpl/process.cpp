#include "core/motif/workload/hpl/process.hpp"

#include <algorithm>

#include "core/motif/workload/hpl/pivot_search.hpp"

namespace dryfly::motif::hpl {
namespace {

constexpr std::uint32_t exchange_tags = 512;
constexpr std::uint32_t broadcast_tags = 1024;
constexpr std::uint32_t first_broadcast_tag = 2 * exchange_tags + 2;
// As in programs/hpl/factor.cpp: a product is made in pieces, between which the rank looks after its messages.
constexpr std::uint64_t first_piece = 512;
constexpr std::uint64_t growth = 3;

}  // namespace

Process::Process(Rank& rank, Setting& setting)
    : setting_(setting),
      problem_(setting.problem),
      row_(problem_.row_of(rank.id())),
      column_(problem_.column_of(rank.id())),
      row_blocks_(problem_.row_blocks()),
      column_blocks_(problem_.column_blocks()),
      traffic_(rank),
      parts_done_(problem_.split) {}

Duration Process::copied(std::uint64_t bytes) const {
  return setting_.machinery.pcie.bytes_per_s == 0 ? Duration{}
                                                  : transmission_time(Bytes{bytes}, setting_.machinery.pcie);
}

Task Process::factor(Rank& me) {
  const Stretch& stretch = setting_.stretch;
  const std::uint64_t count = problem_.panels();
  counts_ = stretch.counted == stretch.first;
  for (std::uint64_t ahead = 0; ahead < std::min(problem_.depth, count - stretch.first); ++ahead) {
    co_await prepare(me, stretch.first + ahead, stretch.first);
  }
  for (std::uint64_t step = stretch.first; step <= stretch.last; ++step) {
    counts_ = counts_ || step == stretch.counted;
    if (step == stretch.counted) setting_.marks.begun_sum_ps += static_cast<double>(me.now().ps);
    if (step == stretch.middle()) setting_.marks.middle_sum_ps += static_cast<double>(me.now().ps);
    const std::uint64_t newest = step + problem_.depth;
    if (newest < count) co_await prepare(me, newest, step);
    Panel& current = panel(step);
    co_await receive(me, current);
    const std::uint64_t done = std::min((std::min(newest, count - 1) + 1) * problem_.block, problem_.order);
    co_await update(me, current, column_blocks_.size(column_) - column_blocks_.below(done, column_), false);
    co_await worked(me);
    traffic_.poll();
  }
  // A GPU may still be at work, as it was when the counting began.
  setting_.marks.ended_sum_ps += static_cast<double>(me.now().ps);
  if (!stretch.solves) enter(me, 0);
  counts_ = stretch.solves;
  if (setting_.machinery.gpu_is_free) co_await pass(me, gpu_free_);
  enter(me, setting_.phases.broadcast);
  co_await traffic_.wait_for_all(me);
  enter(me, 0);
}

void Process::set(Panel& panel, std::uint64_t index) const {
  panel.index = index;
  panel.column = index * problem_.block;
  panel.width = std::min(problem_.block, problem_.order - panel.column);
  panel.owner_row = row_blocks_.owner(panel.column);
  panel.owner_column = column_blocks_.owner(panel.column);
  panel.first_row = row_blocks_.below(panel.column + panel.width, row_);
  panel.rows = row_blocks_.size(row_) - panel.first_row;
}

// Brings the panel up to date with those from `oldest` on, factors it and begins to broadcast it.
Task Process::prepare(Rank& me, std::uint64_t index, std::uint64_t oldest) {
  Panel& next = panel(index);
  enter(me, setting_.phases.broadcast);
  co_await traffic_.wait(me, next.broadcast);
  set(next, index);
  if (column_ == next.owner_column) {
    for (std::uint64_t each = oldest; each < index; ++each) {
      co_await receive(me, panel(each));
      co_await update(me, panel(each), next.width, true);
    }
    enter(me, setting_.phases.panel);
    co_await factor_panel(me, next);
  }
  enter(me, setting_.phases.broadcast);
  const std::uint64_t stride = problem_.columns > 1 ? column_stride(next.rows) : 0;
  const std::uint64_t elements = next.width * next.width + next.width + stride * next.width;
  next.rounds = PanelBroadcast({.problem = &problem_,
                                .row = row_,
                                .root = next.owner_column,
                                .position = (column_ + problem_.columns - next.owner_column) % problem_.columns,
                                .size = problem_.columns,
                                .elements = elements,
                                .tag = first_broadcast_tag + static_cast<std::uint32_t>(index % broadcast_tags),
                                .lumping = setting_.lumping});
  next.broadcast.set(&next.rounds, setting_.broadcast_lane);
  traffic_.start(next.broadcast);
}

Task Process::receive(Rank& me, Panel& panel) {
  if (column_ == panel.owner_column) co_return;
  enter(me, setting_.phases.broadcast);
  co_await traffic_.wait(me, panel.broadcast);
}

Task Process::factor_panel(Rank& me, Panel& panel) {
  const std::uint64_t first_row = row_blocks_.below(panel.column, row_);
  const std::uint64_t rows = row_blocks_.size(row_) - first_row;
  std::vector<PanelStep>& steps = setting_.plans[panel.width];
  if (steps.empty()) steps = plan_panel(problem_, panel.width);
  const WorkRates& rates = setting_.panel_rates;
  if (setting_.machinery.panel_on_cpu) work(copied(rows * panel.width * element_bytes));
  for (const PanelStep& step : steps) {
    switch (step.kind) {
      case PanelStep::Kind::leaf:
        co_await leaf(me, panel, step.column, step.rows);
        break;
      case PanelStep::Kind::solve_top:
        work(rates.triangular_solve(step.rows, step.columns, Precision::fp64));
        break;
      case PanelStep::Kind::update_top:
        work(rates.product(step.rows, step.columns, step.depth, Precision::fp64));
        break;
      case PanelStep::Kind::update_low: {
        const std::uint64_t from = active(panel, step.column);
        work(rates.product(rows - std::min(rows, from), step.columns, step.depth, Precision::fp64));
        break;
      }
    }
  }
  if (problem_.columns > 1) work(rates.memory(2 * panel.width * panel.rows * element_bytes));
  if (setting_.machinery.panel_on_cpu) work(copied(rows * panel.width * element_bytes));
  co_await worked(me);
}

Task Process::leaf(Rank& me, Panel& panel, std::uint64_t begin, std::uint64_t count) {
  const std::uint64_t rows = row_blocks_.size(row_) - row_blocks_.below(panel.column, row_);
  for (std::uint64_t column = begin; column < begin + count; ++column) {
    const std::uint64_t from = active(panel, column);
    const std::uint64_t height = rows - std::min(rows, from);
    work(setting_.panel_rates.memory(problem_.leaf_passes(count, height) * height * element_bytes));
    if (problem_.rows == 1) continue;
    co_await worked(me);
    co_await search_pivot(me, panel, column);
  }
}

Task Process::search_pivot(Rank& me, Panel& panel, std::uint64_t column) {
  const bool alone = problem_.search == PivotSearch::point_to_point ||
                     (problem_.search == PivotSearch::hybrid_panel && panel.index == 0) ||
                     (problem_.search == PivotSearch::hybrid_column && column == 0);
  const PivotMessage message{.problem = &problem_,
                             .row = row_,
                             .column = column_,
                             .size = Bytes{(3 + 2 * panel.width) * element_bytes},
                             .lane = setting_.swap_lane};
  if (alone) {
    co_await exchange_candidates(me, message);
  } else {
    co_await allreduce_candidates(me, message);
  }
}

Task Process::update(Rank& me, Panel& panel, std::uint64_t count, bool ahead) {
  if (problem_.rows == 1) {
    co_await update_alone(me, panel, count, ahead);
    co_return;
  }
  const std::uint64_t parts = std::max<std::uint64_t>(1, std::min(problem_.split, count / problem_.block));
  const auto columns_of = [&](std::uint64_t part) { return count * (part + 1) / parts - count * part / parts; };
  const bool beside = setting_.machinery.gpu_is_free;
  for (std::uint64_t part = 0; part < parts; ++part) {
    Exchange& exchange = exchanges_[part % 2];
    if (part == 0) {
      if (beside) co_await pass(me, parts_done_[0]);
      enter(me, setting_.phases.swap);
      start_exchange(exchange, panel, columns_of(0));
      co_await worked(me);
      traffic_.start(exchange.schedule);
    }
    enter(me, setting_.phases.swap);
    co_await traffic_.wait(me, exchange.schedule);
    finish_exchange(panel, columns_of(part));
    co_await worked(me);
    if (part + 1 < parts) {
      Exchange& next = exchanges_[(part + 1) % 2];
      if (beside) co_await pass(me, parts_done_[part + 1]);
      start_exchange(next, panel, columns_of(part + 1));
      co_await worked(me);
      traffic_.start(next.schedule);
    }
    co_await update_part(me, panel, columns_of(part), part, ahead);
  }
  if (!ahead) std::fill(parts_done_.begin() + static_cast<std::ptrdiff_t>(parts), parts_done_.end(), gpu_free_);
}

// The rows change places in the matrix.
Task Process::update_alone(Rank& me, Panel& panel, std::uint64_t count, bool ahead) {
  const std::uint64_t swaps = setting_.moves.of(panel.index).exchanges;
  if (setting_.machinery.gpu_is_free) co_await pass(me, parts_done_[0]);
  enter(me, setting_.phases.swap);
  work(setting_.rates.memory(2 * 2 * swaps * count * element_bytes));
  co_await worked(me);
  co_await update_part(me, panel, count, 0, ahead);
  if (!ahead) std::fill(parts_done_.begin(), parts_done_.end(), gpu_free_);
}

// The rows that this process gives, and at the top those that leave it, are packed.
void Process::start_exchange(Exchange& exchange, Panel& panel, std::uint64_t count) {
  exchange_tag_ = (exchange_tag_ + 1) % exchange_tags;
  const RowMoves& moves = setting_.moves.of(panel.index);
  const std::uint32_t position = (row_ + problem_.rows - panel.owner_row) % problem_.rows;
  const std::uint64_t rows =
      moves.gathered[position + 1] - moves.gathered[position] + (position == 0 ? moves.displaced.back() : 0);
  if (count > 0) {
    work(setting_.rates.memory(2 * rows * count * element_bytes));
    work(copied(rows * count * element_bytes));
  }
  exchange.rounds = RowExchange({.problem = &problem_,
                                 .moves = &moves,
                                 .column = column_,
                                 .owner = panel.owner_row,
                                 .position = position,
                                 .columns = count,
                                 .tag = 1 + 2 * exchange_tag_,
                                 .lumping = setting_.lumping});
  exchange.schedule.set(&exchange.rounds, setting_.swap_lane);
}

void Process::finish_exchange(Panel& panel, std::uint64_t count) {
  if (count == 0) return;
  const RowMoves& moves = setting_.moves.of(panel.index);
  const std::uint32_t position = (row_ + problem_.rows - panel.owner_row) % problem_.rows;
  const std::uint64_t arriving = moves.displaced[position + 1] - moves.displaced[position];
  work(setting_.rates.memory(2 * (arriving + panel.width) * count * element_bytes));
  work(copied((arriving + panel.width) * count * element_bytes));
}

Duration Process::update_time(const Panel& panel, std::uint64_t count) const {
  const WorkRates& rates = setting_.rates;
  Duration time = rates.triangular_solve(panel.width, count, Precision::fp64);
  if (problem_.rows > 1 && row_ == panel.owner_row) {
    time = time + rates.memory(2 * element_bytes * count * panel.width);
  }
  return time + rates.product(panel.rows, count, panel.width, Precision::fp64);
}

// U := L1^-1 U, then A := A - L2 U. A GPU that works beside the rank takes parts one after the other, but panels that
// are prepared at once.
Task Process::update_part(Rank& me, Panel& panel, std::uint64_t count, std::uint64_t part, bool ahead) {
  if (setting_.machinery.gpu_is_free) {
    const Duration time = update_time(panel, count);
    if (ahead) {
      enter(me, setting_.phases.gemm);
      work(time);
      co_await worked(me);
    } else {
      gpu_free_ = std::max(gpu_free_, me.now()) + time;
      parts_done_[part] = gpu_free_;
    }
    co_return;
  }
  enter(me, setting_.phases.trsm);
  work(setting_.rates.triangular_solve(panel.width, count, Precision::fp64));
  co_await worked(me);
  if (problem_.rows > 1 && row_ == panel.owner_row) {
    enter(me, setting_.phases.swap);
    work(setting_.rates.memory(2 * element_bytes * count * panel.width));
    co_await worked(me);
  }
  enter(me, setting_.phases.gemm);
  co_await multiply(me, panel, count);
}

Task Process::multiply(Rank& me, Panel& panel, std::uint64_t count) {
  std::uint64_t piece = problem_.rows * problem_.columns == 1 ? count : first_piece;
  for (std::uint64_t done = 0; done < count; piece *= growth) {
    const std::uint64_t columns = std::min(piece, count - done);
    work(setting_.rates.product(panel.rows, columns, panel.width, Precision::fp64));
    done += columns;
    if (traffic_.idle()) continue;
    co_await worked(me);
    traffic_.poll();
  }
  co_await worked(me);
}

Task Process::pass(Rank& me, Instant until) {
  if (until <= me.now()) co_return;
  enter(me, setting_.phases.gemm);
  co_await traffic_.pass(me, until);
  enter(me, setting_.phases.swap);
}

}  // namespace dryfly::motif::hpl
