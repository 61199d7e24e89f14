// Graph500's breadth-first search: the messages of programs/proxy/graph500.c, from levels that are drawn without a
// graph (core/motif/workload/graph500/levels.hpp, docs/model/skeleton-graph500.md).
//
// Parameters, in base units: scale, edgefactor; roots, how many searches; alpha, beta, when a level goes bottom up;
// compute, none, cpu or gpu: whose memory is looked up; line, bytes of an access to it.
#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>

#include "core/motif/collective/selection.hpp"
#include "core/motif/workload/graph500/levels.hpp"
#include "core/motif/workload/work_rates.hpp"
#include "core/motif/workload/workload.hpp"
#include "core/spec/fields.hpp"
#include "core/unit/random.hpp"

namespace dryfly::motif {
namespace {

using graph500::Level;
using graph500::Problem;
using graph500::Search;

constexpr std::uint64_t pair_bytes = 8;  // target's number at its owner, and source's in its column
constexpr std::uint32_t gather_tag = 1;
constexpr std::uint32_t pairs_tag = 2;
constexpr std::uint32_t known_tag = 3;

struct Setting {
  const Problem& problem;
  const std::vector<Search>& searches;
  std::uint64_t seed = 0;
  const Selection& selection;
  const WorkRates* rates = nullptr;  // nothing is computed
  std::uint64_t line = 0;
  std::vector<Duration> longest;  // of each search, of all ranks
};

// What one rank does in the program's order.
class Searcher {
 public:
  Searcher(Setting& setting, std::uint32_t rank)
      : setting_(setting),
        rows_(setting.problem.rows),
        columns_(setting.problem.columns),
        row_(rank / columns_),
        column_(rank % columns_) {}

  Task run(Rank& me) {
    const Communicator all = world(me);
    const CollectiveCall barrier{.what = Collective::barrier, .size = {}};
    for (std::size_t number = 0; number < setting_.searches.size(); ++number) {
      co_await run_collective(me, all, barrier, setting_.selection);
      const Instant began = me.now();
      for (const Level& level : setting_.searches[number].levels) {
        co_await agree(me);
        stream_ = RandomStream(setting_.seed, mix(number) + ++level_, Purpose::workload);
        co_await gather(me, level);
        if (level.bottom_up) {
          co_await look_up(me, level);
        } else {
          co_await send_found(me, level);
        }
      }
      co_await agree(me);
      setting_.longest[number] = std::max(setting_.longest[number], me.now() - began);
    }
    co_await run_collective(me, all, barrier, setting_.selection);
  }

 private:
  // How many there are in the level, and their degrees.
  Task agree(Rank& me) {
    const CollectiveCall sum{.what = Collective::allreduce, .size = Bytes{16}, .element = Bytes{8}};
    co_await run_collective(me, world(me), sum, setting_.selection);
  }

  // Of the column: bits around a ring, numbers by recursive doubling.
  Task gather(Rank& me, const Level& level) {
    if (level.bottom_up) {
      const std::uint32_t on = (row_ + 1) % rows_ * columns_ + column_;
      const std::uint32_t back = (row_ + rows_ - 1) % rows_ * columns_ + column_;
      for (std::uint32_t step = 0; step + 1 < rows_; ++step) co_await me.sendrecv(on, back, gather_tag, bits());
      co_return;
    }
    const double mean = level.frontier / static_cast<double>(rows_) / columns_;
    for (std::uint32_t apart = 1; apart < rows_; apart *= 2) {
      const std::uint32_t other = (row_ ^ apart) * columns_ + column_;
      const std::uint64_t key = std::uint64_t{columns_ + apart} * rows_ * columns_ + me.id();
      co_await me.sendrecv(other, other, gather_tag, whole(mean * apart, key, number_bytes()));
    }
  }

  Task send_found(Rank& me, const Level& level) {
    const double pairs = level.pairs[column_];
    co_await compute(me, level.vertices[column_] + level.edges[column_], 0);
    double coming = 0;
    for (std::uint32_t step = 1; step < columns_; ++step) {
      const std::uint32_t from = (column_ + columns_ - step) % columns_;
      me.irecv(row_ * columns_ + from, pairs_tag);
      coming += level.pairs[from];
    }
    for (std::uint32_t step = 1; step < columns_; ++step) {
      const std::uint32_t to = (column_ + step) % columns_;
      const std::uint64_t key = me.id() * std::uint64_t{columns_} + to;
      me.isend(row_ * columns_ + to, pairs_tag, whole(pairs, key, pair_bytes));
    }
    co_await me.wait_all();
    co_await compute(me, coming, pair_bytes * coming);
  }

  Task look_up(Rank& me, const Level& level) {
    const std::uint32_t on = row_ * columns_ + (column_ + 1) % columns_;
    const std::uint32_t back = row_ * columns_ + (column_ + columns_ - 1) % columns_;
    for (std::uint32_t step = 0; step < columns_; ++step) {
      // Bits of what is known, and of what has edges here; a vertex has a line in an index, and its first edges one.
      co_await compute(me, 2 * level.vertices[step] + level.edges[step], 2.0 * static_cast<double>(bits().count));
      const std::uint32_t part = (column_ + columns_ - step) % columns_;
      const std::uint32_t from = (column_ + step) % columns_;
      if (step > 0) {
        me.irecv(row_ * columns_ + from, pairs_tag);
        const std::uint64_t key = me.id() * std::uint64_t{columns_} + part;
        me.isend(row_ * columns_ + part, pairs_tag, whole(level.pairs[step], key, pair_bytes));
      }
      if (columns_ > 1) {
        me.irecv(back, known_tag);
        me.isend(on, known_tag, bits());
      }
      co_await me.wait_all();
      co_await compute(me, level.pairs[step], static_cast<double>(pair_bytes) * level.pairs[step]);
    }
  }

  // So many accesses at random, each of a line, and bytes one behind the other.
  Rank::Computing compute(Rank& me, double accesses, double bytes) const {
    if (setting_.rates == nullptr) return me.compute({});
    const double all = accesses * static_cast<double>(setting_.line) + bytes;
    return me.compute(setting_.rates->memory(static_cast<std::uint64_t>(std::llround(all))));
  }

  // A number of the column's has 32 bits, or 64.
  std::uint64_t number_bytes() const { return setting_.problem.local() * rows_ <= std::uint64_t{1} << 32 ? 4 : 8; }
  Bytes bits() const { return Bytes{setting_.problem.local() / 8}; }
  // So many on average.
  Bytes whole(double mean, std::uint64_t key, std::uint64_t each) const {
    const double share = static_cast<double>(stream_.draw(key) >> 11) * 0x1p-53;
    return Bytes{static_cast<std::uint64_t>(mean + share) * each};
  }

  Setting& setting_;
  std::uint32_t rows_;
  std::uint32_t columns_;
  std::uint32_t row_;
  std::uint32_t column_;
  std::uint64_t level_ = 0;
  RandomStream stream_{0, 0, Purpose::workload};
};

Task program(Rank& me, Setting& setting) {
  Searcher searcher(setting, me.id());
  co_await searcher.run(me);
}

Problem problem_of(Parameters& parameters, std::uint32_t ranks) {
  if (!std::has_single_bit(ranks)) {
    throw SpecError("ranks = " + std::to_string(ranks) + ": accepted is a power of two");
  }
  const auto bits = static_cast<std::uint32_t>(std::bit_width(ranks) - 1);
  Problem problem;
  problem.scale = static_cast<std::uint32_t>(parameters.number_or("scale", 26 + bits, 6 + bits, 32 + bits));
  problem.edge_factor = static_cast<double>(parameters.number_or("edgefactor", 16, 1, 1024));
  problem.rows = std::uint32_t{1} << (bits / 2);
  problem.columns = ranks / problem.rows;
  problem.alpha = static_cast<double>(parameters.number_or("alpha", 14, 1, 1'000'000));
  problem.beta = static_cast<double>(parameters.number_or("beta", 24, 1, 1'000'000));
  return problem;
}

std::unique_ptr<WorkRates> rates_of(Stage& stage, Parameters& parameters) {
  const std::string where = parameters.text_or("compute", "none");
  if (where == "none") return nullptr;
  if (where != "cpu" && where != "gpu") {
    throw SpecError("compute = `" + where + "`: accepted is none, cpu or gpu");
  }
  return std::make_unique<WorkRates>(stage.spec(), stage.placement().per_node(), ProductShape{},
                                     where == "cpu" ? Where::cpu : Where::gpu);
}

}  // namespace

Answer predict_graph500(Stage& stage, Parameters& parameters) {
  const Problem problem = problem_of(parameters, stage.ranks());
  const std::uint64_t roots = parameters.number_or("roots", 1, 1, 64);
  const std::unique_ptr<WorkRates> rates = rates_of(stage, parameters);
  const std::uint64_t line = parameters.number_or("line", 64, 1, 4096);
  parameters.check_all_used();
  const std::uint64_t seed = stage.spec().number(fields::run_seed);
  std::vector<Search> searches;
  for (std::uint64_t number = 0; number < roots; ++number) searches.push_back(draw_search(problem, seed, number));
  const Selection selection = Selection::of_library("mpich");
  Setting setting{.problem = problem,
                  .searches = searches,
                  .seed = seed,
                  .selection = selection,
                  .rates = rates.get(),
                  .line = line,
                  .longest = std::vector<Duration>(roots)};
  Answer answer;
  stage.run([&](Rank& me) { return program(me, setting); }, answer, {});
  double inverse = 0;  // rates are averaged as the specification has it
  double levels = 0;
  double edges = 0;
  double share = 0;
  for (std::uint64_t number = 0; number < roots; ++number) {
    const Search& search = searches[number];
    answer.time = answer.time + setting.longest[number];
    inverse += static_cast<double>(setting.longest[number].ps) * 1e-12 / search.traversed;
    levels += static_cast<double>(search.levels.size());
    edges += search.traversed;
    share += search.found / std::exp2(problem.scale);
  }
  const auto count = static_cast<double>(roots);
  answer.time = Duration{answer.time.ps / roots};
  answer.figures.emplace_back("edges_per_s", count / inverse);
  answer.figures.emplace_back("scale", problem.scale);
  answer.figures.emplace_back("levels", levels / count);
  answer.figures.emplace_back("edges", edges / count);
  answer.figures.emplace_back("found_share", share / count);
  answer.chosen = selection.chosen();
  return answer;
}

}  // namespace dryfly::motif
