// The product in AMX-BF16. Its tiles hold 16 columns of C each, 16 rows of C in each of them, so that a row of a tile
// lies in C as it is stored: the instruction's left operand is U transposed, its right one L transposed. A block of C
// is 32 by 32: four tiles hold its sums, and for 32 steps of the depth two tiles of U and two of L are loaded for four
// products. By Intel's optimisation manual these take 64 cycles (16 each) and the loads 32 from the first cache.
//
// L and U are packed once for each panel into what the tiles load: slivers of 32 rows, or columns, in which 32 steps
// of the depth follow each other as two tiles, filled up with zeros. L has pairs of the depth side by side.
//
// A template of the tile instructions, because few computers have them: tests give it the same in software.
#pragma once

#include <algorithm>
#include <cstring>

#include "kernel.hpp"
#include "tiles_amx.hpp"

namespace dryfly::mxp {

// As subtract_block.
using SubtractBlock = void (*)(std::int64_t rows, std::int64_t columns, const float* product, Bf16* c,
                               std::int64_t stride);

template <class Tiles, SubtractBlock kSubtract>
class AmxKernel final : public Kernel {
 public:
  std::int64_t left_bytes(std::int64_t m, std::int64_t k) const override {
    return parts(m) * parts(k) * kBlockElements * element_bytes(Precision::bf16);
  }
  std::int64_t right_bytes(std::int64_t k, std::int64_t n) const override { return left_bytes(n, k); }

  std::int64_t right_offset(std::int64_t k, std::int64_t column) const override {
    return column % kBlock == 0 ? right_bytes(k, column) : -1;
  }

  void pack_left(std::int64_t m, std::int64_t k, const void* a, std::int64_t stride, void* packed) const override {
    auto* target = static_cast<Bf16*>(packed);
    for (std::int64_t row = 0; row < m; row += kBlock)
      for (std::int64_t depth = 0; depth < k; depth += kBlock)
        for (std::int64_t half = 0; half < kBlock; half += kTile, target += kTileElements) {
          const std::int64_t rows = std::clamp<std::int64_t>(m - row - half, 0, kTile);
          const std::int64_t depths = std::min(kBlock, k - depth);
          if (rows < kTile || depths < kBlock) std::memset(target, 0, kTileElements * sizeof(Bf16));
          const Bf16* source = static_cast<const Bf16*>(a) + row + half + depth * stride;
          std::int64_t d = 0;
          for (; rows == kTile && d + 1 < depths; d += 2) {
            const Bf16 *first = source + d * stride, *second = first + stride;
            Bf16* pairs = target + d / 2 * kBlock;
            for (std::int64_t i = 0; i < kTile; ++i) pairs[2 * i] = first[i], pairs[2 * i + 1] = second[i];
          }
          for (; d < depths; ++d)
            for (std::int64_t i = 0; i < rows; ++i) target[d / 2 * kBlock + 2 * i + d % 2] = source[i + d * stride];
        }
  }

  void pack_right(std::int64_t k, std::int64_t n, const void* b, std::int64_t stride, void* packed) const override {
    auto* target = static_cast<Bf16*>(packed);
    for (std::int64_t column = 0; column < n; column += kBlock)
      for (std::int64_t depth = 0; depth < k; depth += kBlock, target += kBlockElements) {
        const std::int64_t columns = std::min(kBlock, n - column), depths = std::min(kBlock, k - depth);
        if (columns < kBlock || depths < kBlock) std::memset(target, 0, kBlockElements * sizeof(Bf16));
        const Bf16* source = static_cast<const Bf16*>(b) + depth + column * stride;
        for (std::int64_t j = 0; j < columns; ++j)
          std::memcpy(target + j * kBlock, source + j * stride, static_cast<std::size_t>(depths) * sizeof(Bf16));
      }
  }

  void subtract(std::int64_t m, std::int64_t n, std::int64_t k, const void* left, const void* right, void* c,
                std::int64_t stride, Zeros zeros) override {
    const std::int64_t sliver = parts(k) * kBlockElements;
    const std::int64_t cached = std::max<std::int64_t>(1, kCached / (sliver * element_bytes(Precision::bf16))) * kBlock;
    Tiles tiles;
    alignas(64) float product[kBlockElements];
    for (std::int64_t begin = 0; begin < m; begin += cached)
      for (std::int64_t column = 0; column < n; column += kBlock)
        for (std::int64_t row = begin; row < std::min(m, begin + cached); row += kBlock) {
          // A triangle's rows or columns end at the diagonal.
          const std::int64_t end = zeros == Zeros::above_left_diagonal    ? row + kBlock
                                   : zeros == Zeros::below_right_diagonal ? column + kBlock
                                                                          : k;
          const std::int64_t rows = std::min(kBlock, m - row), columns = std::min(kBlock, n - column);
          Bf16* target = static_cast<Bf16*>(c) + row + column * stride;
          multiply(tiles, parts(std::min(k, end)), static_cast<const Bf16*>(left) + row / kBlock * sliver,
                   static_cast<const Bf16*>(right) + column / kBlock * sliver, target, columns, stride, product);
          kSubtract(rows, columns, product, target, stride);
        }
  }

  void diagonal_products(std::int64_t row, std::int64_t column, std::int64_t count, std::int64_t k, std::int64_t,
                         const void* left, const void* right, double* sums) const override {
    const std::int64_t sliver = parts(k) * kBlockElements;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t r = row + i, c = column + i;
      const Bf16* a = static_cast<const Bf16*>(left) + r / kBlock * sliver + r % kBlock / kTile * kTileElements;
      const Bf16* b = static_cast<const Bf16*>(right) + c / kBlock * sliver + c % kBlock * kBlock;
      float even = 0, odd = 0;
      for (std::int64_t depth = 0; depth < parts(k) * kBlock; depth += 2) {
        const Bf16* both = a + depth / kBlock * kBlockElements + depth % kBlock / 2 * kBlock + r % kTile * 2;
        const Bf16* other = b + depth / kBlock * kBlockElements + depth % kBlock;
        even += to_float(both[0]) * to_float(other[0]);
        odd += to_float(both[1]) * to_float(other[1]);
      }
      sums[i] = even + odd;
    }
  }

  Precision precision() const override { return Precision::bf16; }
  std::string description() const override { return "dryfly's own for AMX-BF16"; }

 private:
  static constexpr std::int64_t kTile = 16;   // rows of a tile
  static constexpr std::int64_t kBlock = 32;  // rows, columns, and steps of the depth, of two tiles
  static constexpr std::int64_t kTileElements = kTile * kBlock, kBlockElements = kBlock * kBlock;
  static constexpr std::int64_t kRowBytes = 64, kProductRowBytes = 128;
  // Slivers of L that stay in the second cache while U passes by: every processor with AMX has two megabytes.
  static constexpr std::int64_t kCached = 1280 << 10;

  static std::int64_t parts(std::int64_t count) { return (count + kBlock - 1) / kBlock; }

  // C's block is fetched meanwhile, a few columns at each step, so that its lines do not hold up the tiles'.
  static void multiply(Tiles& tiles, std::int64_t steps, const Bf16* left, const Bf16* right, const Bf16* c,
                       std::int64_t columns, std::int64_t stride, float* product) {
    constexpr std::int64_t kFetched = 4;
    const Bf16* const fetched_end = c + columns * stride;
    tiles.template zero<0>();
    tiles.template zero<1>();
    tiles.template zero<2>();
    tiles.template zero<3>();
    for (std::int64_t step = 0; step < steps; ++step, left += kBlockElements, right += kBlockElements) {
      for (std::int64_t i = 0; i < kFetched && c != fetched_end; ++i, c += stride) __builtin_prefetch(c, 1);
      tiles.template load<4>(right, kRowBytes);
      tiles.template load<6>(left, kRowBytes);
      tiles.template multiply<0, 4, 6>();
      tiles.template load<7>(left + kTileElements, kRowBytes);
      tiles.template multiply<1, 4, 7>();
      tiles.template load<5>(right + kTileElements, kRowBytes);
      tiles.template multiply<2, 5, 6>();
      tiles.template multiply<3, 5, 7>();
    }
    tiles.template store<0>(product, kProductRowBytes);
    tiles.template store<1>(product + kTile, kProductRowBytes);
    tiles.template store<2>(product + kTile * kBlock, kProductRowBytes);
    tiles.template store<3>(product + kTile * kBlock + kTile, kProductRowBytes);
  }
};

}  // namespace dryfly::mxp
