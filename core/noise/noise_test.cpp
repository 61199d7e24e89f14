#include "core/noise/noise.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

using namespace dryfly;

namespace {

constexpr std::uint64_t us = 1'000'000;
constexpr std::uint64_t ms = 1000 * us;
constexpr std::uint64_t second = 1000 * ms;

NoiseSettings settings_with(std::initializer_list<NoiseSource> sources) {
  NoiseSettings settings{};
  settings.seed = 1;
  settings.cores = 4;
  for (const NoiseSource& source : sources) settings.sources[settings.source_count++] = source;
  return settings;
}

NoiseSource source_of(std::uint64_t period_ps, std::uint64_t least_ps, std::uint64_t most_ps) {
  return {.period_ps = period_ps,
          .least_ps = least_ps,
          .most_ps = most_ps,
          .chance = noise_certain,
          .reach = NoiseReach::each_core,
          .regular = 0,
          .node = any_node,
          .reserved = 0};
}

struct Core {
  explicit Core(const NoiseSettings& settings, std::uint32_t number = 0, std::uint64_t origin_ps = 0) {
    noise.begin(settings, 7, number, origin_ps, taken);
  }
  NoiseTaken taken{};
  Noise noise{};
};

}  // namespace

TEST_CASE("on a silent core everything takes what it takes") {
  const NoiseSettings settings{};
  Core core(settings);
  CHECK(core.noise.duration_ps(5, 100 * second) == 100 * second);
  CHECK(core.noise.resume_ps(12345) == 12345);
}

TEST_CASE("a regular detour takes its length once in each period") {
  NoiseSource tick = source_of(ms, 3 * us, 3 * us);
  tick.regular = 1;
  const auto settings = settings_with({tick});
  Core core(settings);
  // In the 997 us that a period leaves a rank gets on by 997 us, so 997 ms of work take 1000 periods; where the work
  // ends within one, its detour may or may not be behind.
  const std::uint64_t took = core.noise.duration_ps(0, 997 * ms);
  CHECK(took >= second - 3 * us);
  CHECK(took <= second + 3 * us);
  CHECK(core.taken.interrupted_ps == took - 997 * ms);
}

TEST_CASE("what random detours take is the share of the closed form") {
  // One of 10 to 30 us in each of 40 % of the periods of 1 ms: the mean is 0.4 x 20 us / 1 ms = 0.8 % of the time. Of n
  // periods the standard deviation is sqrt(n (E[x^2] - E[x]^2)): E[x^2] = 0.4 (20^2 + 20^2/12) us^2, E[x] = 8 us.
  // Detours of neighbouring periods hardly ever overlap: 20 us of 1 ms, and then by half of it.
  NoiseSource source = source_of(ms, 10 * us, 30 * us);
  source.chance = noise_certain * 4 / 10;
  const auto settings = settings_with({source});
  Core core(settings);
  constexpr double periods = 20'000;
  std::uint64_t now = 0;
  while (now < 20 * second) now += core.noise.duration_ps(now, 7 * us);
  const double taken_us = static_cast<double>(core.taken.interrupted_ps) / us;
  const double deviation_us = std::sqrt(periods * (0.4 * (400 + 400.0 / 12) - 64));
  CHECK(std::abs(taken_us - periods * 8) < 5 * deviation_us);
  CHECK(std::abs(static_cast<double>(core.taken.detours) - 0.4 * periods) < 5 * std::sqrt(periods * 0.24));
}

TEST_CASE("in how many pieces a rank works, and how often it looks, changes nothing") {
  const auto settings = settings_with({source_of(100 * us, us, 9 * us), source_of(330 * us, us, 20 * us)});
  Core whole(settings);
  Core pieces(settings);
  Core looking(settings);
  const std::uint64_t took = whole.noise.duration_ps(0, second);
  std::uint64_t now = 0;
  for (int i = 0; i < 100'000; ++i) now += pieces.noise.duration_ps(now, 10 * us);
  CHECK(now == took);
  CHECK(pieces.taken.interrupted_ps == whole.taken.interrupted_ps);
  for (std::uint64_t at = 0; at < took; at += 50 * us) {
    looking.noise.duration_ps(at, 1);
    looking.noise.resume_ps(at + 1);
  }
  CHECK(looking.noise.resume_ps(took + 1) == whole.noise.resume_ps(took + 1));
}

TEST_CASE("a wait that is over within a detour ends with it") {
  NoiseSource tick = source_of(ms, 100 * us, 100 * us);
  tick.regular = 1;
  const auto settings = settings_with({tick});
  Core worker(settings);
  // Where the first detour ends: of work until then, and a picosecond more.
  std::uint64_t begin = 0;
  for (std::uint64_t at = 0; at < ms && begin == 0; at += us) {
    if (worker.noise.duration_ps(at, us) != us) begin = at;
  }
  Core waiter(settings);
  const std::uint64_t end = waiter.noise.resume_ps(begin + 50 * us);
  CHECK(end > begin + 50 * us);
  CHECK(end <= begin + 101 * us);
  CHECK(waiter.taken.delayed_ps == end - (begin + 50 * us));
  Core later(settings);
  CHECK(later.noise.resume_ps(end) == end);
  CHECK(later.noise.resume_ps(end + 500 * us) == end + 500 * us);
}

TEST_CASE("a seed gives the same detours again, another one others, and each core its own") {
  auto settings = settings_with({source_of(100 * us, us, 9 * us)});
  auto other_seed = settings;
  other_seed.seed = 2;
  const auto ends = [](const NoiseSettings& of, std::uint32_t number, std::uint64_t origin_ps = 0) {
    Core core(of, number, origin_ps);
    std::vector<std::uint64_t> found;
    std::uint64_t now = origin_ps;
    for (int i = 0; i < 100; ++i) found.push_back((now += core.noise.duration_ps(now, 33 * us)) - origin_ps);
    return found;
  };
  CHECK(ends(settings, 0) == ends(settings, 0));
  CHECK(ends(settings, 0) == ends(settings, 0, 77 * ms));  // counted from the beginning of virtual time
  CHECK(ends(settings, 0) != ends(other_seed, 0));
  CHECK(ends(settings, 0) != ends(settings, 1));
  settings.sources[0].reach = NoiseReach::all_cores;
  CHECK(ends(settings, 0) == ends(settings, 1));
}

TEST_CASE("a detour on one core of a node is on that of its four, and on none of another node") {
  NoiseSource source = source_of(ms, 10 * us, 10 * us);
  source.reach = NoiseReach::one_core;
  auto settings = settings_with({source});
  std::uint64_t detours = 0;
  for (std::uint32_t number = 0; number < 4; ++number) {
    Core core(settings, number);
    core.noise.duration_ps(0, 9 * second);
    CHECK(core.taken.detours > 2000);
    CHECK(core.taken.detours < 2500);
    detours += core.taken.detours;
  }
  CHECK(detours >= 9000 - 4);
  CHECK(detours <= 9000 + 100);  // the cores' ends are up to 25 ms apart
  settings.sources[0].node = 8;
  Core core(settings);
  CHECK(core.noise.duration_ps(0, 9 * second) == 9 * second);
}

TEST_CASE("ranks leave MPI_Init up to the skew apart") {
  NoiseSettings settings{};
  settings.start_skew_ps = 10 * us;
  std::uint64_t least = ~std::uint64_t{0};
  std::uint64_t most = 0;
  for (std::uint32_t number = 0; number < 64; ++number) {
    const std::uint64_t skew = Core(settings, number).noise.start_skew_ps();
    least = skew < least ? skew : least;
    most = skew > most ? skew : most;
  }
  CHECK(most <= 10 * us);
  CHECK(least < us);
  CHECK(most > 9 * us);
}
