// What this box does without dryfly, for benches to be measured against: a bare hand-over and dependent loads.
//
//   anchors [loads|hand-over]    the median of five rounds each, a line each: NAME VALUE UNIT
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "bench/dependent_loads.hpp"
#include "bench/hand_over.hpp"

namespace {

constexpr int rounds = 5;

template <typename Measure>
double median_of(Measure measure) {
  std::vector<double> results;
  for (int round = 0; round < rounds; ++round) results.push_back(measure());
  std::sort(results.begin(), results.end());
  return results[rounds / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const char* only = argc > 1 ? argv[1] : "";
  if (argc > 2 || (argc > 1 && std::strcmp(only, "loads") != 0 && std::strcmp(only, "hand-over") != 0)) {
    std::fprintf(stderr, "anchors: its one argument is loads or hand-over, without one it measures both\n");
    return 2;
  }
  if (std::strcmp(only, "hand-over") != 0) {
    dryfly::DependentLoads loads;
    std::printf("dependent-loads %.6g loads/s\n", median_of([&] { return loads.per_s(); }));
    if (loads.at() == ~0U) return 1;
  }
  if (std::strcmp(only, "loads") != 0) {
    using dryfly::bench::Waiting;
    const auto between = [](bool one_core) {
      return median_of(
          [&] { return dryfly::bench::round_trips_per_s({false, Waiting::sleep, Waiting::sleep, one_core}); });
    };
    std::printf("hand-over-one-processor %.6g round-trips/s\n", between(true));
    if (dryfly::bench::processors() > 1) std::printf("hand-over-two-processors %.6g round-trips/s\n", between(false));
  }
  return 0;
}
