// What the kernel for AMX rests on: the tile instructions as their manual gives them, in software, and the choice by
// what a processor and its system answer.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <map>
#include <string>

#include "kernel.hpp"
#include "tiles_software.hpp"

using namespace dryfly::mxp;

namespace {

using Left = std::array<std::array<Bf16, 32>, 16>;   // 16 rows by 32 of depth
using Right = std::array<std::array<Bf16, 32>, 16>;  // 16 pairs of depth by 16 columns
using Sums = std::array<std::array<float, 16>, 16>;

Bf16 bf16(float value) { return from_float<Bf16>(value); }

Sums multiplied(const Left& left, const Right& right, Sums sums = {}) {
  SoftwareTiles tiles;
  tiles.load<0>(sums.data(), 64);
  tiles.load<4>(left.data(), 64);
  tiles.load<6>(right.data(), 64);
  tiles.multiply<0, 4, 6>();
  tiles.store<0>(sums.data(), 64);
  return sums;
}

// A Sapphire Rapids under a Linux that knows AMX, of which a test takes parts away.
struct Faked {
  using Key = std::pair<std::uint32_t, std::uint32_t>;
  std::map<Key, Processor::Registers> leaves = {
      {{1, 0}, {0, 0, 1u << 27, 0}},
      {{7, 0}, {0, 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31, 0, 1u << 22 | 1u << 24}},
      {{7, 1}, {1u << 5, 0, 0, 0}},
      {{0x1d, 1}, {1024u << 16 | 8192, 8u << 16 | 64, 16, 0}},
  };
  std::uint64_t xcr0 = 0x600e7;
  bool permitted = true;
  mutable int asked = 0;  // for the tiles

  Processor processor() const {
    return {[this](std::uint32_t leaf, std::uint32_t subleaf) {
              const auto found = leaves.find({leaf, subleaf});
              return found == leaves.end() ? Processor::Registers{} : found->second;
            },
            [this] { return xcr0; },
            [this] {
              ++asked;
              return permitted;
            }};
  }
  std::string missing() const { return missing_for_amx(processor()); }
  std::string chosen(KernelKind kind) const {
    std::string error;
    const auto kernel = choose_kernel({kind, Precision::bf16, {}}, &error, processor());
    return kernel != nullptr ? kernel->description() : error;
  }
};

}  // namespace

TEST_CASE("a tile product sums each row with each column, pairs of depth side by side") {
  Left left{};
  Right right{};
  for (std::size_t depth = 0; depth < 32; ++depth) {
    left[3][depth] = bf16(static_cast<float>(depth + 1));
    right[depth / 2][2 * 5 + depth % 2] = bf16(static_cast<float>(depth));
  }
  Sums before{};
  before[3][5] = -1000;
  before[2][5] = 7;
  const Sums sums = multiplied(left, right, before);
  CHECK(sums[3][5] == 32 * 31 * 33 / 3 - 1000);  // the sum of d (d + 1) for d < 32
  CHECK(sums[2][5] == 7);
  CHECK(sums[3][4] == 0);
}

TEST_CASE("a tile product sums even and odd depths apart, and adds what was there last") {
  Left left{};
  Right right{};
  for (std::size_t pair = 0; pair < 16; ++pair) right[pair][0] = right[pair][1] = bf16(1);
  // One after the other 2^24 + 1 - 2^24 would be 0 or 1 by rounding; apart the 1 survives.
  left[0][0] = bf16(0x1p24f), left[0][1] = bf16(1), left[0][2] = bf16(-0x1p24f);
  CHECK(multiplied(left, right)[0][0] == 1);
  // 2^24 + 1 is a tie, to even; in one sum with what was there the two ones would make 2.
  left = {};
  left[0][0] = bf16(1), left[0][2] = bf16(1);
  Sums before{};
  before[0][0] = 0x1p24f;
  CHECK(multiplied(left, right, before)[0][0] == 0x1p24f + 2);
  left[0][2] = 0;
  CHECK(multiplied(left, right, before)[0][0] == 0x1p24f);
}

TEST_CASE("a tile product takes numbers below the normal ones for 0, read or made") {
  Left left{};
  Right right{};
  right[0][0] = bf16(0x1p100f);
  left[0][0] = bf16(0x1p-127f);
  CHECK(multiplied(left, right)[0][0] == 0);
  left[0][0] = bf16(0x1p-126f);
  CHECK(multiplied(left, right)[0][0] == 0x1p-26f);
  right[0][0] = bf16(0x1p-1f);
  CHECK(multiplied(left, right)[0][0] == 0);
  Sums before{};
  before[0][0] = 0x1p-130f;
  CHECK(multiplied(left, right, before)[0][0] == 0);
}

TEST_CASE("tiles of other sizes than the product needs are refused") {
  SoftwareTiles tiles;
  TileConfig config;
  config.rows[4] = 8;
  tiles.configure(config);
  CHECK_THROWS_AS((tiles.multiply<0, 4, 6>()), std::logic_error);
  CHECK_NOTHROW((tiles.multiply<0, 5, 6>()));
  config.row_bytes[5] = 128;
  CHECK_THROWS_AS(tiles.configure(config), std::logic_error);
}

TEST_CASE("AMX is taken where cpuid has it, the system saves its tiles and lets them be used") {
  Faked faked;
  CHECK(faked.missing().empty());
  CHECK(faked.asked == 1);
  CHECK(faked.chosen(KernelKind::chosen) == "dryfly's own for AMX-BF16");
  CHECK(faked.chosen(KernelKind::amx) == "dryfly's own for AMX-BF16");
  CHECK(faked.chosen(KernelKind::avx512_bf16) == "dryfly's own for AVX512-BF16");
}

TEST_CASE("what AMX lacks is said, and the kernel for AVX512-BF16 is taken instead") {
  const auto check = [](const Faked& faked, const std::string& missing) {
    CHECK(faked.missing() == missing);
    CHECK(faked.chosen(KernelKind::chosen) == "dryfly's own for AVX512-BF16");
    CHECK(faked.chosen(KernelKind::amx) ==
          "--kernel amx: " + missing + "; accepted here are avx512-bf16, mkl and sgemm");
  };
  for (const int bit : {22, 24}) {
    Faked faked;
    faked.leaves[{7, 0}].edx &= ~(1u << bit);
    check(faked, "this processor has no AMX-BF16");
    CHECK(faked.asked == 0);
  }
  for (const int bit : {17, 18}) {
    Faked faked;
    faked.xcr0 &= ~(1u << bit);
    check(faked, "this system does not save the tiles of AMX");
    CHECK(faked.asked == 0);
  }
  Faked forbidden;
  forbidden.permitted = false;
  check(forbidden, "this system does not let a process use the tiles of AMX");
  Faked smaller;
  smaller.leaves[{0x1d, 1}].ecx = 8;
  check(smaller, "this processor's AMX has other tiles than 8 of 16 x 64 bytes");
}

TEST_CASE("without AVX512-BF16 neither of the own kernels is taken") {
  const auto check = [](const Faked& faked, const std::string& missing) {
    CHECK(faked.missing() == missing);
    CHECK(faked.chosen(KernelKind::amx) == "--kernel amx: " + missing + "; accepted here are mkl and sgemm");
    CHECK(faked.chosen(KernelKind::avx512_bf16) ==
          "--kernel avx512-bf16: " + missing + "; accepted here are mkl and sgemm");
    CHECK(faked.chosen(KernelKind::chosen).find("dryfly's own") == std::string::npos);
  };
  Faked older;
  older.leaves[{7, 1}] = {};
  check(older, "this processor has no AVX512-BF16");
  Faked unsaved;
  unsaved.leaves[{1, 0}] = {};
  check(unsaved, "this system does not save the registers of AVX-512");
}

TEST_CASE("the kernel for AVX2 is taken by itself where there is no AVX-512, and elsewhere when it is asked for") {
  Faked older;
  older.leaves[{7, 0}] = {0, 1u << 5, 0, 0};
  older.leaves[{7, 1}] = {};
  CHECK(older.chosen(KernelKind::chosen) == "dryfly's own for AVX2");
  CHECK(older.chosen(KernelKind::amx) ==
        "--kernel amx: this processor has no AMX-BF16; accepted here are avx2, mkl and sgemm");
  Faked between = older;  // AVX-512 without its BF16
  between.leaves[{7, 0}].ebx |= 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
  CHECK(between.chosen(KernelKind::chosen).find("dryfly's own") == std::string::npos);
  CHECK(between.chosen(KernelKind::avx2) == "dryfly's own for AVX2");
  between.xcr0 = 0x7;  // which the system does not save
  CHECK(between.chosen(KernelKind::chosen) == "dryfly's own for AVX2");
  older.xcr0 = 0x3;
  CHECK(older.chosen(KernelKind::avx2) ==
        "--kernel avx2: this system does not save the registers of AVX; accepted here are mkl and sgemm");
  CHECK(older.chosen(KernelKind::chosen).find("dryfly's own") == std::string::npos);
}
