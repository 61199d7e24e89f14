// HPL's pseudo-random matrix: the linear congruential sequence X' = a X + c modulo 2^64 (Knuth's multiplier), laid
// along the columns: element (i, j) of a matrix with M rows is number i + j M, counted from the one after the seed.
// Because a jump of any length costs a few multiplications, every process makes exactly its own elements, and A need
// never be kept twice.
#pragma once

#include <bit>
#include <cstdint>

namespace dryfly::hpl {

class Generator {
 public:
  static constexpr std::uint64_t kHplSeed = 100;  // the seed that HPL uses for A and b

  explicit Generator(std::uint64_t seed) : seed_(seed) {}

  // The state that gives element number `index`.
  std::uint64_t state_at(std::uint64_t index) const;

  // `count` elements that follow each other in the sequence, from number `index` on.
  void fill(std::uint64_t index, std::int64_t count, double* target) const;

  // HPL: 1/2 - X / 2^64, where X is rounded to a double first. The result lies in [-1/2, 1/2].
  static double value(std::uint64_t state) { return 0.5 - to_double(state) * 0x1p-64; }

  // static_cast<double>, without the branch that it takes before AVX-512: both halves are put where a double of their
  // place has its last bits, and only their sum is rounded.
  static double to_double(std::uint64_t whole) {
    const double high = std::bit_cast<double>(whole >> 32 | std::bit_cast<std::uint64_t>(0x1p84));
    const double low = std::bit_cast<double>((whole & 0xffffffff) | std::bit_cast<std::uint64_t>(0x1p52));
    return high - (0x1p84 + 0x1p52) + low;
  }

 private:
  static constexpr std::uint64_t kMultiplier = 6364136223846793005u;
  static constexpr std::uint64_t kIncrement = 1;

  std::uint64_t seed_;
};

}  // namespace dryfly::hpl
