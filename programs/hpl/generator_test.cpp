#include "generator.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <vector>

namespace {

using dryfly::hpl::Generator;

constexpr std::uint64_t kRows = 1000;

double element(std::uint64_t row, std::uint64_t column) {
  double value = 0;
  Generator(Generator::kHplSeed).fill(row + column * kRows, 1, &value);
  return value;
}

}  // namespace

// The bits were read out of the memory of HPL as Debian's hpcc 1.5.0-3 carries it (N = 1000, NB = 64, one process),
// at its first search for a pivot.
TEST_CASE("elements of the matrix have HPL's bits") {
  CHECK(std::bit_cast<std::uint64_t>(element(0, 0)) == 0xbf0b0d8f532d8000);
  CHECK(std::bit_cast<std::uint64_t>(element(1, 0)) == 0x3fd8959b2285d2a4);
  CHECK(std::bit_cast<std::uint64_t>(element(2, 0)) == 0x3fdc65502e86d5b5);
  CHECK(std::bit_cast<std::uint64_t>(element(500, 0)) == 0x3fd20bb017b4aa6a);
  CHECK(std::bit_cast<std::uint64_t>(element(999, 0)) == 0x3fd88dbf228b5940);
  CHECK(std::bit_cast<std::uint64_t>(element(0, 1)) == 0xbfd37c4345913e96);
  CHECK(std::bit_cast<std::uint64_t>(element(999, 1)) == 0x3fb08a80b7a40ec8);
}

TEST_CASE("a jump gives what so many single steps give") {
  const Generator generator(7);
  std::vector<double> all(1000);
  generator.fill(0, 1000, all.data());
  for (const std::int64_t count : {1, 7, 8, 9, 100})
    for (const std::int64_t first : {0, 1, 13, 899}) {
      std::vector<double> part(static_cast<std::size_t>(count));
      generator.fill(static_cast<std::uint64_t>(first), count, part.data());
      for (std::int64_t i = 0; i < count; ++i)
        CHECK(part[static_cast<std::size_t>(i)] == all[static_cast<std::size_t>(first + i)]);
    }
}

TEST_CASE("whole numbers of 64 bits are rounded to a double as the language does it") {
  const auto same = [](std::uint64_t whole) { REQUIRE(Generator::to_double(whole) == static_cast<double>(whole)); };
  for (int bit = 0; bit < 64; ++bit)  // around every power of two, and around the ties between doubles
    for (std::uint64_t offset = 0; offset < 5; ++offset)
      for (const std::uint64_t half : {std::uint64_t{0}, std::uint64_t{1} << bit >> 54}) {
        same((std::uint64_t{1} << bit) + half + offset);
        same((std::uint64_t{1} << bit) + half - offset);
        same((std::uint64_t{1} << bit) + 3 * half - offset);
      }
  for (std::uint64_t state = 100, i = 0; i < 100'000; ++i) same(state = 6364136223846793005u * state + 1);
}
