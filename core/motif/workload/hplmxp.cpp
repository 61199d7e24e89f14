// HPL-MxP: the messages of `dryfly-mxp` and the time of its computing (docs/model/hplmxp.md): LU without pivoting with
// a look-ahead of one, then refinement. It follows programs/mxp/factor.cpp and solve.cpp call by call, as they are with
// --skip-numerics.
//
// Parameters, in base units; the names in brackets are those of `dryfly-mxp`:
//   n, nb, p, q       order, block, grid; p * q = ranks
//   pmap              row, column: order of the ranks in the grid
//   element           bytes of an element where it is kept and sent: 2 or 4 (--precision)
//   corrections       steps of refinement
//
// MPICH divides a broadcast's data by bytes, whatever its elements are.
//
// Left out: what a kernel adds to L and U when it packs them; samples, so that all of it is run.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "core/motif/collective/selection.hpp"
#include "core/motif/flight/traffic.hpp"
#include "core/motif/workload/hpl/problem.hpp"
#include "core/motif/workload/hplmxp/left_broadcast.hpp"
#include "core/motif/workload/work_rates.hpp"
#include "core/motif/workload/workload.hpp"

namespace dryfly::motif {
namespace {

using hpl::Cyclic;
using hplmxp::LeftBroadcast;

constexpr std::uint64_t line = 64;           // bytes; packed L and U are whole numbers of them
constexpr std::uint64_t part_columns = 256;  // of an update, between looks after messages
constexpr std::uint64_t single = 4, full = 8;
constexpr std::uint32_t row_number = 1, column_number = 2;  // of communicators

struct Setting {
  std::uint64_t order = 0, block = 0;
  std::uint32_t rows = 1, columns = 1;
  bool row_major = true;
  std::uint64_t element = 2;
  std::uint64_t corrections = 3;
  WorkRates rates;
  Selection selection;
  std::uint16_t panel = 0, broadcast = 0, trsm = 0, gemm = 0, refinement = 0;

  std::uint64_t steps() const { return (order + block - 1) / block; }
  Cyclic row_blocks() const { return {order, block, rows}; }
  Cyclic column_blocks() const { return {order, block, columns}; }
  Precision stored() const { return element == 2 ? Precision::half : Precision::fp32; }
  double operations() const {
    const auto n = static_cast<double>(order);
    return (2.0 / 3.0 * n + 1.5) * n * n;
  }
};

class Process {
 public:
  Process(Rank& rank, const Setting& setting)
      : setting_(setting),
        row_(setting.row_major ? rank.id() / setting.columns : rank.id() % setting.rows),
        column_(setting.row_major ? rank.id() % setting.columns : rank.id() / setting.rows),
        along_row_(setting.row_major ? Communicator(row_ * setting.columns, 1, setting.columns, row_number)
                                     : Communicator(row_, setting.rows, setting.columns, row_number)),
        along_column_(setting.row_major ? Communicator(column_, setting.columns, setting.rows, column_number)
                                        : Communicator(column_ * setting.rows, 1, setting.rows, column_number)),
        traffic_(rank) {}
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  Task run(Rank& me) {
    co_await factor(me);
    // The ranks compare times.
    co_await collective(me, world(me), {.what = Collective::allreduce, .size = Bytes{full}, .element = Bytes{full}});
    me.enter(setting_.refinement);
    co_await apply_factors(me);
    for (std::uint64_t step = 0; step < setting_.corrections; ++step) {
      co_await difference(me);
      co_await apply_factors(me);
    }
    co_await difference(me);
    me.enter(0);
  }

 private:
  std::uint64_t width(std::uint64_t step) const {
    return std::min(setting_.block, setting_.order - step * setting_.block);
  }
  std::uint64_t end(std::uint64_t step) const { return step * setting_.block + width(step); }
  std::uint64_t rows_below(std::uint64_t step) const {
    return setting_.row_blocks().size(row_) - setting_.row_blocks().below(end(step), row_);
  }
  std::uint64_t columns_after(std::uint64_t step) const {
    return setting_.column_blocks().size(column_) - setting_.column_blocks().below(end(step), column_);
  }
  std::uint32_t owner_row(std::uint64_t step) const { return static_cast<std::uint32_t>(step % setting_.rows); }
  std::uint32_t owner_column(std::uint64_t step) const { return static_cast<std::uint32_t>(step % setting_.columns); }
  std::uint64_t packed(std::uint64_t m, std::uint64_t k) const {
    return (m * k * setting_.element + line - 1) / line * line;
  }
  Duration copied(std::uint64_t m, std::uint64_t k) const {
    return setting_.rates.memory(2 * m * k * setting_.element);
  }
  Duration product(std::uint64_t m, std::uint64_t n, std::uint64_t k) const {
    return setting_.rates.product(m, n, k, setting_.stored());
  }

  Task collective(Rank& me, const Communicator& ranks, const CollectiveCall& call) {
    if (ranks.size() > 1 && call.size.count > 0) co_await run_collective(me, ranks, call, setting_.selection);
    traffic_.poll();
  }
  Task broadcast(Rank& me, const Communicator& ranks, std::uint64_t bytes, std::uint32_t root) {
    me.enter(setting_.broadcast);
    co_await collective(me, ranks, {.what = Collective::bcast, .size = Bytes{(bytes + 3) / 4 * 4}, .root = root});
  }

  // The diagonal block, L of the step, and its way along the row begins.
  Task prepare(Rank& me, std::uint64_t step) {
    const std::uint64_t n = width(step);
    const bool my_column = column_ == owner_column(step);
    if (my_column && row_ == owner_row(step)) {
      me.enter(setting_.panel);
      co_await me.compute(setting_.rates.arithmetic(4 * n * n * n / 3, Precision::fp32));
    }
    if (end(step) == setting_.order) co_return;
    const std::uint64_t rows = rows_below(step);
    if (my_column) {
      co_await broadcast(me, along_column_, n * n * setting_.element, owner_row(step));
      me.enter(setting_.trsm);
      if (rows > 0) co_await me.compute(copied(rows, n) + copied(n, n) + product(rows, n, n) + copied(rows, n));
    }
    me.enter(setting_.broadcast);
    left_rounds_ = LeftBroadcast(along_row_, column_, owner_column(step), packed(rows, n), step);
    left_.set(&left_rounds_, 0);
    traffic_.start(left_);
  }

  Task update(Rank& me, std::uint64_t step) {
    const std::uint64_t n = width(step), rows = rows_below(step), columns = columns_after(step);
    me.enter(setting_.gemm);
    Duration diagonal{};
    for (std::uint64_t later = step + 1; later < setting_.steps(); ++later) {
      if (owner_row(later) == row_ && owner_column(later) == column_) diagonal = diagonal + product(width(later), 1, n);
    }
    std::uint64_t done = column_ == owner_column(step + 1) ? width(step + 1) : 0;
    co_await me.compute(diagonal + product(rows, done, n));
    co_await prepare(me, step + 1);
    me.enter(setting_.gemm);
    for (std::uint64_t count = 0; done < columns; done += count) {
      count = std::min(part_columns, columns - done);
      co_await me.compute(product(rows, count, n));
      traffic_.poll();
    }
  }

  Task factor(Rank& me) {
    co_await prepare(me, 0);
    for (std::uint64_t step = 0; step + 1 < setting_.steps(); ++step) {
      const std::uint64_t n = width(step), columns = columns_after(step);
      me.enter(setting_.broadcast);
      co_await traffic_.wait(me, left_);
      if (row_ == owner_row(step)) {
        co_await broadcast(me, along_row_, n * n * setting_.element, owner_column(step));
        me.enter(setting_.trsm);
        if (columns > 0) {
          co_await me.compute(copied(n, columns) + copied(n, n) + product(n, columns, n) + copied(n, columns));
        }
      }
      co_await broadcast(me, along_column_, packed(n, columns), owner_row(step));
      co_await update(me, step);
    }
  }

  // Vectors of length n are everywhere: a sum at the first rank, and back.
  Task sum_everywhere(Rank& me) {
    const Bytes size{setting_.order * full};
    co_await collective(me, world(me), {.what = Collective::reduce, .size = size, .element = Bytes{full}});
    co_await collective(me, world(me), {.what = Collective::bcast, .size = size});
  }
  // The matrix is made anew where it is multiplied.
  Task difference(Rank& me) {
    const std::uint64_t elements = setting_.row_blocks().size(row_) * setting_.column_blocks().size(column_);
    co_await me.compute(setting_.rates.arithmetic(6 * elements, Precision::fp64));
    co_await sum_everywhere(me);
  }
  Task apply_factors(Rank& me) {
    for (std::uint64_t step = 0; step < setting_.steps(); ++step) co_await solve_block(me, step, true);
    for (std::uint64_t step = setting_.steps(); step-- > 0;) co_await solve_block(me, step, false);
    co_await sum_everywhere(me);
  }
  Task solve_block(Rank& me, std::uint64_t step, bool forward) {
    const std::uint64_t n = width(step);
    const Bytes size{n * single};
    if (row_ == owner_row(step)) {
      co_await collective(
          me, along_row_,
          {.what = Collective::reduce, .size = size, .element = Bytes{single}, .root = owner_column(step)});
    }
    if (column_ != owner_column(step)) co_return;
    if (row_ == owner_row(step)) co_await me.compute(setting_.rates.product(n, 1, n, Precision::fp32));
    co_await collective(me, along_column_, {.what = Collective::bcast, .size = size, .root = owner_row(step)});
    const std::uint64_t above = setting_.row_blocks().below(step * setting_.block, row_);
    co_await me.compute(product(forward ? rows_below(step) : above, 1, n));
  }

  const Setting& setting_;
  const std::uint32_t row_;
  const std::uint32_t column_;
  const Communicator along_row_;
  const Communicator along_column_;
  flight::Traffic traffic_;
  LeftBroadcast left_rounds_;
  flight::Schedule left_;
};

Task run_process(Rank& me, const Setting& setting) {
  Process process(me, setting);
  co_await process.run(me);
}

Setting read(Stage& stage, Parameters& parameters) {
  Setting setting{.rates = WorkRates(stage.spec(), stage.placement().per_node(), {}, Where::faster),
                  .selection = Selection::of_library("mpich")};
  setting.order = parameters.number("n", 1, std::uint64_t{1} << 31);
  setting.block = parameters.number("nb", 1, std::uint64_t{1} << 16);
  setting.rows = static_cast<std::uint32_t>(parameters.number("p", 1, 1U << 24));
  setting.columns = static_cast<std::uint32_t>(parameters.number("q", 1, 1U << 24));
  if (std::uint64_t{setting.rows} * setting.columns != stage.ranks()) {
    throw SpecError("p * q = " + std::to_string(setting.rows) + " * " + std::to_string(setting.columns) +
                    ": accepted is " + std::to_string(stage.ranks()) + ", the number of ranks");
  }
  const std::string map = parameters.text_or("pmap", "row");
  if (map != "row" && map != "column") throw SpecError("pmap = `" + map + "`: accepted is row, column");
  setting.row_major = map == "row";
  setting.element = parameters.number_or("element", 2, 2, 4);
  if (setting.element == 3) throw SpecError("element = 3: accepted is 2 or 4");
  setting.corrections = parameters.number_or("corrections", 3, 0, 1000);
  return setting;
}

}  // namespace

Answer predict_hplmxp(Stage& stage, Parameters& parameters) {
  Setting setting = read(stage, parameters);
  parameters.check_all_used();
  // Each step has some four messages a rank, each pass of the solve two.
  const std::uint64_t messages = setting.steps() * stage.ranks() * 4;
  if (!stage.affords(messages, Bytes{setting.block * setting.block * setting.element})) {
    throw SpecError("n = " + std::to_string(setting.order) + ", nb = " + std::to_string(setting.block) + ": " +
                    std::to_string(setting.steps()) + " panels on " + std::to_string(stage.ranks()) +
                    " ranks, all of which are run: accepted is what a minute allows, fewer panels or ranks");
  }
  Answer answer;
  stage.run([&](Rank& me) { return run_process(me, setting); }, answer,
            [&](Job& job) {
              setting.panel = job.phases().named("PANEL");
              setting.broadcast = job.phases().named("BCAST");
              setting.trsm = job.phases().named("TRSM");
              setting.gemm = job.phases().named("GEMM");
              setting.refinement = job.phases().named("REFINE");
            },
            [&](Job& job) {
              answer.time = job.end() - Instant{};
              answer.phases = job.phases().means(job.count());
            });
  const double seconds = static_cast<double>(answer.time.ps) * 1e-12;
  answer.figures.emplace_back("rate_flop_per_s", setting.operations() / seconds);
  answer.figures.emplace_back("panels", static_cast<double>(setting.steps()));
  answer.chosen = setting.selection.chosen();
  return answer;
}

}  // namespace dryfly::motif
