#include "core/motif/workload/graph500/levels.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/unit/random.hpp"

namespace dryfly::motif::graph500 {
namespace {

// The generator's quarters, by whether source and target have a one: graph500.org, version 2.
constexpr double both_zero = 0.57;
constexpr double one_of_them = 0.19;
constexpr double both_one = 0.05;

using Counts = std::vector<double>;  // by class

double binomial_term(double n, double k, double p) {
  return std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) + k * std::log(p) +
                  (n - k) * std::log1p(-p));
}

class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t number) : stream_(seed, number, Purpose::workload) {}

  double uniform() { return (static_cast<double>(stream_.draw(counter_++) >> 11) + 0.5) * 0x1p-53; }
  std::uint32_t below(std::uint32_t bound) { return stream_.below(counter_++, bound); }
  // Of n, each with probability p.
  double binomial(double n, double p) {
    if (n <= 0 || p <= 0) return 0;
    if (p > 0.5) return n - binomial(n, 1 - p);
    const double mean = n * p;
    if (mean > few) return std::clamp(std::round(mean + std::sqrt(mean * (1 - p)) * normal()), 0.0, n);
    double left = uniform();
    double term = std::exp(n * std::log1p(-p));
    double count = 0;
    while (left > term && count < n) {
      left -= term;
      term *= (n - count) / (count + 1) * p / (1 - p);
      ++count;
    }
    return count;
  }

 private:
  static constexpr double few = 30;
  double normal() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

  RandomStream stream_;
  std::uint64_t counter_ = 0;
};

struct Classes {
  explicit Classes(const Problem& problem) {
    const double scale = problem.scale;
    const double zero = both_zero + one_of_them;
    for (double ones = 0; ones <= scale; ++ones) {
      const double label = std::exp((scale - ones) * std::log(zero) + ones * std::log1p(-zero));
      counts.push_back(std::round(std::exp2(scale) * binomial_term(scale, ones, 0.5)));
      degrees.push_back(2 * problem.edge_factor * std::exp2(scale) * label);
    }
    for (std::size_t from = 0; from < counts.size(); ++from) rates.push_back(rates_of(from));
  }

  std::size_t size() const { return counts.size(); }
  // Edges of a vertex of class `from` with one of class `to`.
  Counts rates_of(std::size_t from) const {
    const auto ones = static_cast<double>(from);
    const double zeros = static_cast<double>(size() - 1) - ones;
    Counts found(size(), 0.0);
    for (double of_zeros = 0; of_zeros <= zeros; ++of_zeros) {
      const double share = binomial_term(zeros, of_zeros, one_of_them / (both_zero + one_of_them));
      for (double of_ones = 0; of_ones <= ones; ++of_ones) {
        const double both = share * binomial_term(ones, of_ones, both_one / (both_one + one_of_them));
        const auto to = static_cast<std::size_t>(of_zeros + of_ones);
        found[to] += degrees[from] * both / counts[to];
      }
    }
    return found;
  }

  Counts counts;
  Counts degrees;
  std::vector<Counts> rates;
};

double sum(const Counts& counts) { return std::accumulate(counts.begin(), counts.end(), 0.0); }

class Drawing {
 public:
  Drawing(const Problem& problem, std::uint64_t seed, std::uint64_t number)
      : problem_(problem),
        classes_(problem),
        draws_(seed, number),
        unvisited_(classes_.counts),
        met_(classes_.size(), 0.0),
        frontier_(classes_.size(), 0.0),
        frontier_degree_(classes_.size(), 0.0),
        unknown_(problem.columns, classes_.counts) {}

  Search run() {
    set_root();
    Search search;
    double total = 0;
    for (std::size_t each = 0; each < classes_.size(); ++each) total += classes_.counts[each] * classes_.degrees[each];
    double before = 0;
    double degrees = 0;
    bool is_up = false;
    for (double count = 1; count > 0; count = sum(frontier_)) {
      double own = 0;
      for (std::size_t each = 0; each < classes_.size(); ++each) own += frontier_[each] * frontier_degree_[each];
      degrees += own;
      search.found += count;
      if (is_up) {
        is_up = count >= std::exp2(problem_.scale) / problem_.beta;
      } else {
        is_up = count > before && own > (total - degrees) / problem_.alpha;
      }
      before = count;
      search.levels.push_back(is_up ? bottom_up() : top_down());
      search.levels.back().frontier = count;
    }
    search.traversed = degrees / 2;
    return search;
  }

 private:
  // Any vertex that has an edge.
  void set_root() {
    Counts weights;
    for (std::size_t each = 0; each < classes_.size(); ++each) {
      weights.push_back(-classes_.counts[each] * std::expm1(-classes_.degrees[each]));
    }
    double left = draws_.uniform() * sum(weights);
    std::size_t root = 0;
    while (root + 1 < classes_.size() && left > weights[root]) left -= weights[root++];
    frontier_[root] = 1;
    unvisited_[root] -= 1;
    frontier_degree_[root] = classes_.degrees[root] / -std::expm1(-classes_.degrees[root]);
  }

  // Edges between the given vertices and one of each class.
  Counts rates_to(const Counts& vertices) const {
    Counts rates(classes_.size(), 0.0);
    for (std::size_t from = 0; from < classes_.size(); ++from) {
      if (vertices[from] == 0) continue;
      for (std::size_t to = 0; to < rates.size(); ++to) rates[to] += vertices[from] * classes_.rates[from][to];
    }
    return rates;
  }

  std::vector<Counts> frontier_by_column() {
    std::vector<Counts> columns(problem_.columns, Counts(classes_.size(), 0.0));
    for (std::size_t each = 0; each < classes_.size(); ++each) {
      const bool are_few = frontier_[each] <= 64.0 * problem_.columns;
      for (Counts& column : columns) column[each] = are_few ? 0 : frontier_[each] / problem_.columns;
      for (double vertex = 0; are_few && vertex < frontier_[each]; ++vertex) {
        columns[draws_.below(problem_.columns)][each] += 1;
      }
    }
    return columns;
  }

  // A rank sends each vertex once that it does not know to be visited.
  Level top_down() {
    Level level;
    const double ranks = static_cast<double>(problem_.rows) * problem_.columns;
    const std::vector<Counts> columns = frontier_by_column();
    for (std::size_t column = 0; column < columns.size(); ++column) {
      const Counts rates = rates_to(columns[column]);
      double pairs = 0;
      double edges = 0;
      for (std::size_t each = 0; each < rates.size(); ++each) {
        const double found = -unknown_[column][each] * std::expm1(-rates[each]);
        unknown_[column][each] -= found;
        pairs += found / ranks;
        edges += columns[column][each] * frontier_degree_[each] / problem_.rows;
      }
      level.pairs.push_back(pairs);
      level.vertices.push_back(sum(columns[column]));
      level.edges.push_back(edges);
    }
    find();
    return level;
  }

  // Step by step a part of the row's vertices is looked through by one rank more of the row.
  Level bottom_up() {
    Level level;
    level.bottom_up = true;
    const double ranks = static_cast<double>(problem_.rows) * problem_.columns;
    const Counts rates = rates_to(frontier_);
    const double columns = problem_.columns;
    for (double step = 0; step < columns; ++step) {
      double pairs = 0;
      double vertices = 0;
      double edges = 0;
      for (std::size_t each = 0; each < rates.size(); ++each) {
        const double left = unvisited_[each] * std::exp(-rates[each] * step / columns) / ranks;
        const double degree = (classes_.degrees[each] - met_[each]) / columns;
        const double share = -std::expm1(-rates[each] / columns);
        pairs += left * share;
        if (degree <= 0) continue;
        vertices -= left * std::expm1(-degree);
        edges += left * (share > 0 ? share * degree * columns / rates[each] : degree);
      }
      level.pairs.push_back(pairs);
      level.vertices.push_back(vertices);
      level.edges.push_back(edges);
    }
    // What is found behind a rank's turn is unknown to it.
    Counts unknown(rates.size(), 0.0);
    for (std::size_t each = 0; each < rates.size(); ++each) {
      for (double step = 1; step < columns; ++step) {
        unknown[each] += unvisited_[each] * std::exp(-rates[each] * (step + 1) / columns) / (columns - 1);
      }
    }
    unknown_.assign(problem_.columns, unknown);
    find();
    return level;
  }

  // The next level.
  void find() {
    const bool is_root = sum(unvisited_) + 1 == sum(classes_.counts);
    const Counts rates = rates_to(frontier_);
    Counts found(rates.size(), 0.0);
    do {  // a root has an edge
      for (std::size_t each = 0; each < rates.size(); ++each) {
        found[each] = draws_.binomial(unvisited_[each], -std::expm1(-rates[each]));
      }
    } while (is_root && sum(found) == 0);
    for (std::size_t each = 0; each < rates.size(); ++each) {
      unvisited_[each] -= found[each];
      const double left = std::max(0.0, classes_.degrees[each] - met_[each] - rates[each]);
      frontier_degree_[each] = left + (rates[each] > 0 ? rates[each] / -std::expm1(-rates[each]) : 1.0);
      met_[each] += rates[each];
    }
    frontier_ = found;
  }

  const Problem& problem_;
  const Classes classes_;
  Draws draws_;
  Counts unvisited_;
  Counts met_;  // edges of an unvisited vertex that would have led to a visited one
  Counts frontier_;
  Counts frontier_degree_;
  std::vector<Counts> unknown_;  // by column: vertices that one of its ranks does not know to be visited
};

}  // namespace

Search draw_search(const Problem& problem, std::uint64_t seed, std::uint64_t number) {
  return Drawing(problem, seed, number).run();
}

}  // namespace dryfly::motif::graph500
