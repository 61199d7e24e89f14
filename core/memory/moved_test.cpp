#include "core/memory/moved.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace dryfly {
namespace {

constexpr std::uint64_t interval = MovedMemory::interval_ps;

TEST_CASE("a copy alone takes the time of its core, wherever it begins") {
  auto moved = std::make_unique<MovedMemory>();
  const std::uint64_t room = MovedMemory::room(200'000'000'000);
  for (const std::uint64_t begin : {std::uint64_t{0}, interval - 1, 5 * interval, 10'000 * interval + 77}) {
    const std::uint64_t short_end = moved->end_of(begin, 1000, 24, room);
    CHECK(short_end >= begin + 1000);
    CHECK(short_end <= begin + 1000 + 1000 / 24);  // a byte is not split
    // Ten intervals at 24 GB/s: whole bytes of each interval, so a little is left for the last.
    const std::uint64_t end = moved->end_of(begin + 20 * interval, 10 * interval, 24 * interval / 100, room);
    CHECK(end >= begin + 30 * interval - 1000);
    CHECK(end <= begin + 30 * interval + 1000);
  }
}

TEST_CASE("nothing, and what takes no time, is over at once") {
  auto moved = std::make_unique<MovedMemory>();
  CHECK(moved->end_of(7, 0, 0, 1) == 7);
  CHECK(moved->end_of(7, 0, 100, 1) == 7);
}

TEST_CASE("any number of cores gets what the memory carries, within a hundredth, and never more") {
  for (const std::uint64_t cores : {1, 4, 8, 9, 56}) {
    auto moved = std::make_unique<MovedMemory>();
    constexpr std::uint64_t rate = 200'000'000'000;
    constexpr std::uint64_t of_core = 24'000'000'000;
    constexpr std::uint64_t bytes = 2 << 20;
    constexpr std::uint64_t alone = bytes * 1'000'000'000'000 / of_core;
    std::vector<std::uint64_t> until(cores);
    constexpr std::uint64_t copies = 100;
    // Each goes on when it is done, and whoever is first comes first.
    for (std::uint64_t n = 0; n < copies * cores; ++n) {
      const auto next = std::min_element(until.begin(), until.end());
      *next = moved->end_of(*next, alone, bytes, MovedMemory::room(rate));
    }
    const std::uint64_t last = *std::max_element(until.begin(), until.end());
    const double reached = static_cast<double>(copies * cores * bytes) / static_cast<double>(last) * 1e12;
    const double least = static_cast<double>(std::min(rate, cores * of_core));
    CHECK(reached <= 1.005 * least);
    CHECK(reached >= 0.97 * least);
  }
}

TEST_CASE("who comes later is slowed, who came first is not") {
  auto moved = std::make_unique<MovedMemory>();
  const std::uint64_t room = 1000;
  CHECK(moved->end_of(0, interval, 1000, room) == interval);
  CHECK(moved->end_of(0, interval, 1000, room) == 2 * interval);
  CHECK(moved->end_of(interval / 2, interval, 1000, room) >= 3 * interval - interval / 2);
}

}  // namespace
}  // namespace dryfly
