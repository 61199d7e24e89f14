// What the tile instructions of AMX-BF16 do, in plain C++ and to the bit, so that the kernel can be tested on any
// processor. After the operations given in Intel's Software Developer's Manual, volume 2 (LDTILECFG, TILELOADD,
// TILESTORED, TILEZERO, TDPBF16PS): an element's products of even and of odd depth are summed apart in FP32, each with
// one rounding to nearest even, then added to each other, then to the tile; numbers below the normal ones count as 0,
// whether read or made. What the processor refuses is refused.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "tiles_amx.hpp"

namespace dryfly::mxp {

class SoftwareTiles {
 public:
  SoftwareTiles() { configure(TileConfig{}); }

  void configure(const TileConfig& config) {
    std::memcpy(config_, &config, sizeof config_);
    if (config_[0] != 1) throw std::logic_error("tiles: there is palette 1 only");
    for (int tile = 0; tile < 8; ++tile)
      if (rows(tile) > 16 || row_bytes(tile) > 64 || row_bytes(tile) % 4 != 0)
        throw std::logic_error("tiles: one is too large");
    std::memset(tiles_, 0, sizeof tiles_);
  }

  template <int Tile>
  void zero() {
    std::memset(tiles_[Tile], 0, sizeof tiles_[Tile]);
  }

  template <int Tile>
  void load(const void* from, std::int64_t row_stride) {
    zero<Tile>();
    for (int row = 0; row < rows(Tile); ++row)
      std::memcpy(tiles_[Tile][row], static_cast<const char*>(from) + row * row_stride,
                  static_cast<std::size_t>(row_bytes(Tile)));
  }

  template <int Tile>
  void store(void* to, std::int64_t row_stride) const {
    for (int row = 0; row < rows(Tile); ++row)
      std::memcpy(static_cast<char*>(to) + row * row_stride, tiles_[Tile][row],
                  static_cast<std::size_t>(row_bytes(Tile)));
  }

  template <int Sums, int Left, int Right>
  void multiply() {
    static_assert(Sums != Left && Sums != Right && Left != Right, "the processor refuses that");
    if (rows(Sums) != rows(Left) || row_bytes(Sums) != row_bytes(Right) || row_bytes(Left) / 4 != rows(Right))
      throw std::logic_error("tiles: their sizes do not fit each other");
    for (int row = 0; row < rows(Sums); ++row)
      for (int column = 0; column < row_bytes(Sums) / 4; ++column) {
        float even = 0, odd = 0;
        for (int pair = 0; pair < rows(Right); ++pair) {
          even = add_product(even, element(Left, row, 2 * pair), element(Right, pair, 2 * column));
          odd = add_product(odd, element(Left, row, 2 * pair + 1), element(Right, pair, 2 * column + 1));
        }
        float sum;
        char* place = tiles_[Sums][row] + 4 * column;
        std::memcpy(&sum, place, sizeof sum);
        sum = flushed(flushed(sum) + flushed(even + odd));
        std::memcpy(place, &sum, sizeof sum);
      }
  }

 private:
  int rows(int tile) const { return config_[48 + tile]; }
  int row_bytes(int tile) const { return config_[16 + 2 * tile] | config_[17 + 2 * tile] << 8; }

  // A BF16 is the upper half of an FP32.
  float element(int tile, int row, int index) const {
    std::uint16_t half;
    std::memcpy(&half, tiles_[tile][row] + 2 * index, sizeof half);
    return flushed(std::bit_cast<float>(std::uint32_t{half} << 16));
  }

  static float flushed(float value) {
    return std::fabs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0f, value) : value;
  }
  static float add_product(float sum, float a, float b) { return flushed(std::fma(a, b, sum)); }

  unsigned char config_[64];
  char tiles_[8][16][64];
};

}  // namespace dryfly::mxp
