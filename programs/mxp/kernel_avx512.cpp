// The product in AVX512-BF16. A tile of C is 48 rows by 8 columns: 24 of the 32 registers hold its sums, and each
// instruction multiplies 16 rows by one column for two steps of the depth. What is packed follows from that: L in
// slivers of 48 rows, U in slivers of 8 columns, both with pairs of the depth side by side, filled up with zeros.
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "kernel.hpp"

#define DRYFLY_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

namespace dryfly::mxp {
namespace {

constexpr std::int64_t kRows = 48, kColumns = 8, kLanes = 16;
// Slivers of L that stay in the second cache while U passes by; a megabyte is the smallest there is.
constexpr std::int64_t kCached = 640 << 10;

std::int64_t pairs_of(std::int64_t k) { return (k + 1) / 2; }
std::int64_t slivers(std::int64_t count, std::int64_t each) { return (count + each - 1) / each; }

DRYFLY_AVX512 __m512 widened(__m256i values) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(values), 16));
}

// The lanes from `begin` on that lie in the first so many rows.
DRYFLY_AVX512 __mmask16 rows_below(std::int64_t rows, std::int64_t begin) {
  return static_cast<__mmask16>((1u << std::clamp<std::int64_t>(rows - begin, 0, kLanes)) - 1);
}

// C := C - sums, rounded, where the mask has it.
DRYFLY_AVX512 void subtract(__mmask16 mask, __m512 sums, Bf16* c) {
  const __m512 old = widened(_mm256_maskz_loadu_epi16(mask, c));
  _mm256_mask_storeu_epi16(c, mask, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_sub_ps(old, sums))));
}

DRYFLY_AVX512 void tile(std::int64_t pairs, const Bf16* left, const Bf16* right, Bf16* c, std::int64_t stride,
                        std::int64_t rows, std::int64_t columns) {
  for (std::int64_t j = 0; j < columns; ++j) {
    _mm_prefetch(reinterpret_cast<const char*>(c + j * stride), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(c + j * stride + 32), _MM_HINT_T0);
  }
  __m512 sum[kColumns][3];
#pragma GCC unroll 8
  for (int j = 0; j < kColumns; ++j)
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i) sum[j][i] = _mm512_setzero_ps();
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    __m512bh a[3];
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i)
      a[i] = reinterpret_cast<__m512bh>(_mm512_load_si512(left + pair * 2 * kRows + i * 2 * kLanes));
#pragma GCC unroll 8
    for (int j = 0; j < kColumns; ++j) {
      int both;
      std::memcpy(&both, right + pair * 2 * kColumns + j * 2, sizeof both);
      const auto b = reinterpret_cast<__m512bh>(_mm512_set1_epi32(both));
#pragma GCC unroll 3
      for (int i = 0; i < 3; ++i) sum[j][i] = _mm512_dpbf16_ps(sum[j][i], a[i], b);
    }
  }
  __mmask16 mask[3];
  for (int i = 0; i < 3; ++i) mask[i] = rows_below(rows, i * kLanes);
#pragma GCC unroll 8
  for (int j = 0; j < kColumns; ++j)
    if (j < columns)
#pragma GCC unroll 3
      for (int i = 0; i < 3; ++i) subtract(mask[i], sum[j][i], c + j * stride + i * kLanes);
}

class Avx512Kernel final : public Kernel {
 public:
  std::int64_t left_bytes(std::int64_t m, std::int64_t k) const override {
    return slivers(m, kRows) * kRows * pairs_of(k) * 2 * element_bytes(Precision::bf16);
  }
  std::int64_t right_bytes(std::int64_t k, std::int64_t n) const override {
    return (slivers(n, kColumns) * kColumns * pairs_of(k) * 2 * element_bytes(Precision::bf16) + 63) / 64 * 64;
  }

  std::int64_t right_offset(std::int64_t k, std::int64_t column) const override {
    return column % kColumns == 0 ? column * pairs_of(k) * 2 * element_bytes(Precision::bf16) : -1;
  }

  void pack_left(std::int64_t m, std::int64_t k, const void* a, std::int64_t stride, void* packed) const override {
    auto* target = static_cast<Bf16*>(packed);
    for (std::int64_t row = 0; row < m; row += kRows) {
      const std::int64_t rows = std::min(kRows, m - row);
      for (std::int64_t depth = 0; depth < k; depth += 2, target += 2 * kRows) {
        const Bf16* first = static_cast<const Bf16*>(a) + row + depth * stride;
        if (rows == kRows && depth + 1 < k) {
          const Bf16* second = first + stride;
          for (std::int64_t i = 0; i < kRows; ++i) target[2 * i] = first[i], target[2 * i + 1] = second[i];
          continue;
        }
        std::memset(target, 0, 2 * kRows * sizeof(Bf16));
        for (std::int64_t i = 0; i < rows; ++i) {
          target[2 * i] = first[i];
          if (depth + 1 < k) target[2 * i + 1] = first[i + stride];
        }
      }
    }
  }

  void pack_right(std::int64_t k, std::int64_t n, const void* b, std::int64_t stride, void* packed) const override {
    auto* target = static_cast<Bf16*>(packed);
    const std::int64_t pairs = pairs_of(k);
    for (std::int64_t column = 0; column < n; column += kColumns, target += pairs * 2 * kColumns) {
      const Bf16* source = static_cast<const Bf16*>(b) + column * stride;
      const std::int64_t columns = std::min(kColumns, n - column);
      if (columns < kColumns || k % 2 != 0)
        std::memset(target, 0, static_cast<std::size_t>(pairs * 2 * kColumns) * sizeof(Bf16));
      for (std::int64_t j = 0; j < columns; ++j) {
        for (std::int64_t pair = 0; pair < k / 2; ++pair)
          std::memcpy(target + (pair * kColumns + j) * 2, source + j * stride + 2 * pair, 2 * sizeof(Bf16));
        if (k % 2 != 0) target[((pairs - 1) * kColumns + j) * 2] = source[j * stride + k - 1];
      }
    }
  }

  void subtract(std::int64_t m, std::int64_t n, std::int64_t k, const void* left, const void* right, void* c,
                std::int64_t stride, Zeros zeros) override {
    const std::int64_t pairs = pairs_of(k), sliver = pairs * 2 * kRows;
    const std::int64_t cached = std::max<std::int64_t>(1, kCached / (sliver * element_bytes(Precision::bf16))) * kRows;
    for (std::int64_t begin = 0; begin < m; begin += cached)
      for (std::int64_t column = 0; column < n; column += kColumns)
        for (std::int64_t row = begin; row < std::min(m, begin + cached); row += kRows) {
          // A triangle's rows or columns end at the diagonal.
          const std::int64_t end = zeros == Zeros::above_left_diagonal    ? row + kRows
                                   : zeros == Zeros::below_right_diagonal ? column + kColumns
                                                                          : k;
          tile(pairs_of(std::min(k, end)), static_cast<const Bf16*>(left) + row / kRows * sliver,
               static_cast<const Bf16*>(right) + column * pairs * 2, static_cast<Bf16*>(c) + row + column * stride,
               stride, std::min(kRows, m - row), std::min(kColumns, n - column));
        }
  }

  void diagonal_products(std::int64_t row, std::int64_t column, std::int64_t count, std::int64_t k, std::int64_t,
                         const void* left, const void* right, double* sums) const override {
    const std::int64_t pairs = pairs_of(k);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t r = row + i, c = column + i;
      const Bf16* a = static_cast<const Bf16*>(left) + r / kRows * pairs * 2 * kRows + r % kRows * 2;
      const Bf16* b = static_cast<const Bf16*>(right) + c / kColumns * pairs * 2 * kColumns + c % kColumns * 2;
      float even = 0, odd = 0;
      for (std::int64_t pair = 0; pair < pairs; ++pair, a += 2 * kRows, b += 2 * kColumns) {
        even += to_float(a[0]) * to_float(b[0]);
        odd += to_float(a[1]) * to_float(b[1]);
      }
      sums[i] = even + odd;
    }
  }

  Precision precision() const override { return Precision::bf16; }
  std::string description() const override { return "dryfly's own for AVX512-BF16"; }
};

}  // namespace

std::unique_ptr<Kernel> avx512_bf16_kernel() { return std::make_unique<Avx512Kernel>(); }

DRYFLY_AVX512 void subtract_block(std::int64_t rows, std::int64_t columns, const float* product, Bf16* c,
                                  std::int64_t stride) {
  constexpr std::int64_t kLong = 32;  // a column of the product
  const __mmask16 first = rows_below(rows, 0), second = rows_below(rows, kLanes);
  for (std::int64_t j = 0; j < columns; ++j, product += kLong, c += stride) {
    subtract(first, _mm512_load_ps(product), c);
    subtract(second, _mm512_load_ps(product + kLanes), c + kLanes);
  }
}

}  // namespace dryfly::mxp
