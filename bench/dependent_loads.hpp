#pragma once
// A fixed loop of dependent loads: what benches of the simulator's own code are measured against, since boxes differ by
// a factor of two and such a loop differs with them. It follows one random cycle through 4 MiB, a load a cache line, as
// an engine follows its events and packets: most of its loads leave the level-two cache.
#include <chrono>
#include <cstdint>
#include <ctime>
#include <random>
#include <utility>
#include <vector>

namespace dryfly {

class DependentLoads {
 public:
  DependentLoads() : lines_(count) {
    std::vector<std::uint32_t> order(count);
    for (std::uint32_t i = 0; i < count; ++i) order[i] = i;
    std::mt19937 random{1};  // its output is fixed by the standard; no distribution, whose output is not
    for (std::uint32_t i = count - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
    for (std::uint32_t i = 0; i < count; ++i) lines_[order[i]].next = order[(i + 1) % count];
    per_s();
  }

  // Loads per CPU second, from two million of them.
  double per_s() {
    const std::clock_t start = std::clock();
    for (std::uint32_t i = 0; i < 2'000'000; ++i) at_ = lines_[at_].next;
    const std::clock_t ticks = std::clock() - start;
    return 2e6 / (static_cast<double>(ticks < 1 ? 1 : ticks) / CLOCKS_PER_SEC);
  }
  std::uint32_t at() const { return at_; }  // so that no compiler drops the loop

 private:
  struct alignas(64) Line {
    std::uint32_t next;
  };
  static constexpr std::uint32_t count = 4 * 1024 * 1024 / sizeof(Line);
  std::vector<Line> lines_;
  std::uint32_t at_ = 0;
};

}  // namespace dryfly
