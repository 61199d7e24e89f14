#include "core/memory/placed.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dryfly {
namespace {

TEST_CASE("what is placed in a range makes a new version of it") {
  std::vector<char> memory(100'000);
  const auto begin = reinterpret_cast<std::uint64_t>(memory.data());
  PlacedMemory placed{};
  CHECK(placed.version(begin, 100'000) == 0);
  placed.note(&memory[10'000], 5000);
  const std::uint64_t first = placed.version(begin, 100'000);
  CHECK(first != 0);
  CHECK(placed.version(begin, 10'000) == 0);
  CHECK(placed.version(begin + 15'000, 10'000) == 0);
  CHECK(placed.version(begin + 14'999, 1) == first);
  placed.note(&memory[10'000], 5000);
  CHECK(placed.version(begin, 100'000) > first);
}

TEST_CASE("pieces that follow one another are one, and short ones that stand alone are none") {
  std::vector<char> memory(100'000);
  const auto begin = reinterpret_cast<std::uint64_t>(memory.data());
  PlacedMemory placed{};
  placed.note(&memory[90'000], 10);
  CHECK(placed.version(begin, 100'000) == 0);
  placed.note(&memory[0], 1024);
  for (std::size_t at = 1024; at < 80'000; at += 8) placed.note(&memory[at], 8);
  CHECK(placed.version(begin, 1) != 0);
  CHECK(placed.version(begin + 79'999, 1) != 0);
  CHECK(placed.version(begin + 80'000, 1) == 0);
}

TEST_CASE("as many pieces are known as there is room for, the latest of them") {
  std::vector<char> memory(PlacedMemory::pieces * 4096 + 4096);
  const auto begin = reinterpret_cast<std::uint64_t>(memory.data());
  PlacedMemory placed{};
  for (std::size_t n = 0; n <= PlacedMemory::pieces; ++n) placed.note(&memory[n * 4096], 1024);
  CHECK(placed.version(begin, 1024) == 0);
  CHECK(placed.version(begin + 4096, 1024) != 0);
}

}  // namespace
}  // namespace dryfly
