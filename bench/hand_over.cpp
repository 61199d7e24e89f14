// The ways of handing over the processor (hand_over.hpp), a line each: the median of five rounds.
#include "bench/hand_over.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace dryfly::bench {
namespace {

struct Variant {
  const char* name;
  HandOver how;
};

constexpr Variant variants[] = {
    {"conductor spins on its own core, ranks sleep", {true, Waiting::sleep, Waiting::spin, false}},
    {"conductor spins on its own core, ranks yield", {true, Waiting::yield, Waiting::spin, false}},
    {"all sleep, one core", {true, Waiting::sleep, Waiting::sleep, true}},
    {"all yield, one core", {true, Waiting::yield, Waiting::yield, true}},
    {"no conductor, ranks sleep, one core", {false, Waiting::sleep, Waiting::sleep, true}},
    {"no conductor, ranks yield, one core", {false, Waiting::yield, Waiting::yield, true}},
    {"no conductor, ranks sleep, a core each", {false, Waiting::sleep, Waiting::sleep, false}},
};

constexpr int rounds = 5;

}  // namespace
}  // namespace dryfly::bench

int main() {
  using namespace dryfly::bench;
  for (const Variant& variant : variants) {
    if (!variant.how.one_core && processors() < 2) continue;
    std::vector<double> results;
    for (int round = 0; round < rounds; ++round) results.push_back(round_trips_per_s(variant.how));
    std::sort(results.begin(), results.end());
    std::printf("bare hand-over, %-46s %8.0f round trips/s\n", variant.name, results[rounds / 2]);
    std::fflush(stdout);
  }
}
