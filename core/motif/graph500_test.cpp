// Graph500's skeleton: its levels against a search of a graph that is there, and its messages against the partition's.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/motif/workload/graph500/levels.hpp"
#include "core/motif/workload/workload.hpp"
#include "core/unit/random.hpp"
#include "testing/sample_machine.hpp"

namespace dryfly::motif::graph500 {
namespace {

constexpr std::uint32_t scale = 13;
constexpr std::uint64_t searches = 200;

std::vector<std::vector<std::uint32_t>> kronecker() {
  std::vector<std::vector<std::uint32_t>> others(std::size_t{1} << scale);
  const RandomStream stream(7, 0, Purpose::test);
  std::uint64_t counter = 0;
  for (std::uint64_t edge = 0; edge < (std::uint64_t{16} << scale); ++edge) {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    for (std::uint32_t bit = 0; bit < scale; ++bit) {
      const std::uint32_t draw = stream.below(counter++, 100);
      from = 2 * from + (draw >= 76);
      to = 2 * to + ((draw >= 57 && draw < 76) || draw >= 95);
    }
    if (from == to) continue;
    others[from].push_back(to);
    others[to].push_back(from);
  }
  return others;
}

struct Means {
  double levels = 0;
  double found = 0;
  double largest = 0;    // vertices of a search's largest level
  double traversed = 0;  // edges
};

Means of_graph() {
  const auto others = kronecker();
  Means means;
  const RandomStream roots(8, 0, Purpose::test);
  std::uint64_t draw = 0;
  for (std::uint64_t number = 0; number < searches; ++number) {
    std::uint32_t root = 0;
    do root = roots.below(draw++, 1U << scale);
    while (others[root].empty());
    std::vector<bool> seen(others.size());
    std::vector<std::uint32_t> level{root};
    seen[root] = true;
    double largest = 0;
    while (!level.empty()) {
      std::vector<std::uint32_t> next;
      for (const std::uint32_t vertex : level) {
        means.traversed += static_cast<double>(others[vertex].size()) / 2 / searches;
        for (const std::uint32_t other : others[vertex]) {
          if (!seen[other]) next.push_back(other);
          seen[other] = true;
        }
      }
      means.found += static_cast<double>(level.size()) / searches;
      means.levels += 1.0 / searches;
      largest = std::max(largest, static_cast<double>(level.size()));
      level = next;
    }
    means.largest += largest / searches;
  }
  return means;
}

Means drawn(std::uint64_t seed) {
  const Problem problem{.scale = scale, .rows = 2, .columns = 4};
  Means means;
  for (std::uint64_t number = 0; number < searches; ++number) {
    const Search search = draw_search(problem, seed, number);
    double largest = 0;
    for (const Level& level : search.levels) largest = std::max(largest, level.frontier);
    means.levels += static_cast<double>(search.levels.size()) / searches;
    means.found += search.found / searches;
    means.largest += largest / searches;
    means.traversed += search.traversed / searches;
  }
  return means;
}

TEST_CASE("levels that are drawn are on average those of a graph") {
  const Means graph = of_graph();
  const Means means = drawn(1);
  CHECK(means.levels == doctest::Approx(graph.levels).epsilon(0.03));
  CHECK(means.found == doctest::Approx(graph.found).epsilon(0.02));
  CHECK(means.largest == doctest::Approx(graph.largest).epsilon(0.05));
  CHECK(means.traversed == doctest::Approx(graph.traversed).epsilon(0.02));
}

TEST_CASE("a seed draws the same search again, and another seed another one") {
  const Problem problem{.scale = 42, .rows = 256, .columns = 256};
  const Search first = draw_search(problem, 1, 0);
  const Search again = draw_search(problem, 1, 0);
  REQUIRE(again.levels.size() == first.levels.size());
  for (std::size_t level = 0; level < first.levels.size(); ++level) {
    CHECK(again.levels[level].frontier == first.levels[level].frontier);
    CHECK(again.levels[level].pairs == first.levels[level].pairs);
  }
  CHECK(draw_search(problem, 2, 0).levels[1].frontier != first.levels[1].frontier);
}

TEST_CASE("a search sends what the partition says: rings and doubling along columns, pairs and bits along rows") {
  fabric::SampleMachine machine;
  machine.groups = 4;
  machine.nodes = 16;
  machine.more +=
      "nic.inline_bytes 192\nnic.pushed_bytes 96\nnic.eager_bytes 18433\nnic.rendezvous_head_bytes 2048\n"
      "nic.egress_latency_ps 333560\nnic.dma_read_latency_ps 600000\nnic.ingress_latency_ps 333560\n"
      "nic.command_interval_ps 29600\nnic.list_entries 16384\nnic.list_entries_share_ppm 1000000\n"
      "nic.command_latency_ps 300000\nnic.completion_latency_ps 300000\nnode.local_latency_ps 300000\n"
      "node.local_rate_bytes_per_s 12000000000\nnode.copy_ps 33000\nhost.send_ps 385000\nhost.receive_ps 70000\n"
      "host.rma_ps 385000\nhost.completion_ps 315000\nhost.poll_ps 30000\nhost.clock_read_ps 25000\n"
      "host.match_ps 100000\n";
  const Spec spec = machine.spec();
  std::vector<const char*> words{"nodes=8", "ppn=1", "scale=16"};
  Parameters parameters(words);
  Stage stage(spec, parameters);
  const Answer answer = predict_graph500(stage, parameters);
  const Search search = draw_search({.scale = 16, .rows = 2, .columns = 4}, 1, 0);
  std::uint64_t messages = (2 + search.levels.size() + 1) * 8 * 3;  // two barriers, and as many sums and one
  for (const Level& level : search.levels) messages += 8 * (1 + (level.bottom_up ? 4 + 3 : 3));
  CHECK(answer.totals.messages == messages);
}

}  // namespace
}  // namespace dryfly::motif::graph500
