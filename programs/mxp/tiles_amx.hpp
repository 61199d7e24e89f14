// The tile instructions of AMX-BF16 that the kernel uses. tiles_software.hpp has the same in plain C++, for tests.
//
// Written as asm statements rather than with GCC's intrinsics, which are such statements too: those take only literal
// numbers of tiles, and do not tell the compiler what memory they read.
#pragma once

#include <cstdint>

namespace dryfly::mxp {

// As LDTILECFG reads it. All eight tiles are 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, first_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

// While an object exists this thread has its tiles; kernels of libraries between two products may set theirs.
class AmxTiles {
 public:
  AmxTiles() {
    const TileConfig config;
    asm volatile("ldtilecfg %0" ::"m"(config));
  }
  ~AmxTiles() { asm volatile("tilerelease"); }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;

  template <int Tile>
  void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(Tile));
  }
  template <int Tile>
  void load(const void* from, std::int64_t row_stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(row_stride), "i"(Tile) : "memory");
  }
  template <int Tile>
  void store(void* to, std::int64_t row_stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(row_stride), "i"(Tile) : "memory");
  }
  // sums (16 x 16 in FP32) += left (16 x 32 in BF16) right (32 x 16, pairs of its rows side by side).
  template <int Sums, int Left, int Right>
  void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(Sums), "i"(Left), "i"(Right));
  }
};

}  // namespace dryfly::mxp
