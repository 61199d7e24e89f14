// The product for processors that have AVX2 and neither AVX-512 nor AMX: in integers of 16 bits, because VPMADDWD
// multiplies twice as many of them as an FMA of FP32. Every row of L and every column of U is written as whole
// multiples of its own step, the steps being as fine as sums of K products in 32 bits allow: with K = 256 the largest
// element is 2,896 steps, so that what is lost is a fraction of a BF16's rounding of that element. The sums are exact;
// they are scaled and subtracted in FP32.
//
// A tile of C is 16 rows by 4 columns, whose sums and factors fit into the 16 registers. What is packed follows from
// that: L in slivers of 16 rows, U in slivers of 4 columns, each with its steps in front and then pairs of the depth
// side by side, filled up with zeros.
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernel.hpp"

#define DRYFLY_AVX2 __attribute__((target("avx2")))

namespace dryfly::mxp {
namespace {

constexpr std::int64_t kRows = 16, kColumns = 4, kLanes = 8;
constexpr std::int64_t kLeftHeader = kRows * sizeof(float), kRightHeader = kColumns * sizeof(float);
// Slivers of L that stay in the second cache while U passes by; half a megabyte is usual.
constexpr std::int64_t kCached = 256 << 10;

std::int64_t pairs_of(std::int64_t k) { return (k + 1) / 2; }
std::int64_t slivers(std::int64_t count, std::int64_t each) { return (count + each - 1) / each; }
std::int64_t left_sliver(std::int64_t k) { return kLeftHeader + pairs_of(k) * kRows * 4; }
std::int64_t right_sliver(std::int64_t k) { return kRightHeader + pairs_of(k) * kColumns * 4; }

// The largest number of steps of which k squares fit into a sum.
float steps_most(std::int64_t k) {
  const double most =
      std::sqrt(std::numeric_limits<std::int32_t>::max() / static_cast<double>(std::max<std::int64_t>(k, 1)));
  return static_cast<float>(std::min(std::floor(most), 32767.0));
}

// Steps for elements whose sizes are `bits` at most, as BF16 without the sign: infinity and NaN make NaN of the step.
struct Steps {
  float step, inverse;
};
Steps steps_for(Bf16 bits, float most) {
  constexpr Bf16 kInfinity = 0x7f80;
  if (bits >= kInfinity) return {std::numeric_limits<float>::quiet_NaN(), 0};
  const float size = to_float(bits);
  // Elements below the normal numbers of FP32 after the division count as zero.
  return size > most * std::numeric_limits<float>::min() ? Steps{size / most, most / size} : Steps{0, 0};
}

DRYFLY_AVX2 __m256 widened(const Bf16* source) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

// Both depths of a pair for eight rows or columns.
DRYFLY_AVX2 __m256i in_steps(__m256 first, __m256 second, __m256 inverse) {
  const __m256i low = _mm256_cvtps_epi32(_mm256_mul_ps(first, inverse));
  const __m256i high = _mm256_cvtps_epi32(_mm256_mul_ps(second, inverse));
  return _mm256_blend_epi16(low, _mm256_slli_epi32(high, 16), 0xaa);
}

// One sliver of L from a block of kRows rows.
DRYFLY_AVX2 void pack_rows(std::int64_t k, float most, const Bf16* a, std::int64_t stride, char* target) {
  __m256i sizes = _mm256_setzero_si256();
  for (std::int64_t depth = 0; depth < k; ++depth) {
    const __m256i column = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + depth * stride));
    sizes = _mm256_max_epi16(sizes, _mm256_and_si256(column, _mm256_set1_epi16(0x7fff)));
  }
  alignas(32) Bf16 largest[kRows];
  _mm256_store_si256(reinterpret_cast<__m256i*>(largest), sizes);

  auto* steps = reinterpret_cast<float*>(target);
  alignas(32) float inverse[kRows];
  for (std::int64_t i = 0; i < kRows; ++i) {
    const Steps found = steps_for(largest[i], most);
    steps[i] = found.step, inverse[i] = found.inverse;
  }
  auto* pairs = reinterpret_cast<__m256i*>(target + kLeftHeader);
  for (std::int64_t depth = 0; depth < k; depth += 2)
    for (std::int64_t i = 0; i < kRows; i += kLanes) {
      const Bf16* column = a + i + depth * stride;
      const __m256 second = depth + 1 < k ? widened(column + stride) : _mm256_setzero_ps();
      _mm256_store_si256(pairs++, in_steps(widened(column), second, _mm256_load_ps(inverse + i)));
    }
}

// C := C - sums in steps, rounded to nearest even; NaN stays NaN.
DRYFLY_AVX2 void subtract(__m256i sums, __m256 step, Bf16* c) {
  const __m256 value = _mm256_sub_ps(widened(c), _mm256_mul_ps(_mm256_cvtepi32_ps(sums), step));
  const __m256i bits = _mm256_castps_si256(value);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded =
      _mm256_srli_epi32(_mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd), 16);
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  const __m256i kept = _mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7fc0), is_nan);
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(kept, kept), 0x08);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(c), _mm256_castsi256_si128(packed));
}

// The sums of a tile, by columns. A function of its own, so that its registers are not shared with what follows.
DRYFLY_AVX2 __attribute__((noinline)) void multiply(std::int64_t pairs, const __m256i* left, const char* right,
                                                    __m256i* sums) {
  __m256i sum[kColumns][2];
#pragma GCC unroll 4
  for (int j = 0; j < kColumns; ++j) sum[j][0] = sum[j][1] = _mm256_setzero_si256();
  for (std::int64_t pair = 0; pair < pairs; ++pair, left += 2, right += kColumns * 4) {
    const __m256i first = left[0], second = left[1];
#pragma GCC unroll 4
    for (int j = 0; j < kColumns; ++j) {
      int both;
      std::memcpy(&both, right + 4 * j, sizeof both);
      const __m256i column = _mm256_set1_epi32(both);
      sum[j][0] = _mm256_add_epi32(sum[j][0], _mm256_madd_epi16(first, column));
      sum[j][1] = _mm256_add_epi32(sum[j][1], _mm256_madd_epi16(second, column));
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < kColumns; ++j) sums[2 * j] = sum[j][0], sums[2 * j + 1] = sum[j][1];
}

DRYFLY_AVX2 void tile(std::int64_t pairs, const char* left, const char* right, Bf16* c, std::int64_t stride) {
  for (std::int64_t j = 0; j < kColumns; ++j) {
    _mm_prefetch(reinterpret_cast<const char*>(c + j * stride), _MM_HINT_T0);
    _mm_prefetch(reinterpret_cast<const char*>(c + j * stride + kRows - 1), _MM_HINT_T0);
  }
  __m256i sums[2 * kColumns];
  multiply(pairs, reinterpret_cast<const __m256i*>(left + kLeftHeader), right + kRightHeader, sums);
  const auto* row_steps = reinterpret_cast<const float*>(left);
  const auto* column_steps = reinterpret_cast<const float*>(right);
  const __m256 first = _mm256_load_ps(row_steps), second = _mm256_load_ps(row_steps + kLanes);
  for (int j = 0; j < kColumns; ++j, c += stride) {
    const __m256 step = _mm256_set1_ps(column_steps[j]);
    subtract(sums[2 * j], _mm256_mul_ps(first, step), c);
    subtract(sums[2 * j + 1], _mm256_mul_ps(second, step), c + kLanes);
  }
}

class Avx2Kernel final : public Kernel {
 public:
  std::int64_t left_bytes(std::int64_t m, std::int64_t k) const override {
    return (slivers(m, kRows) * left_sliver(k) + 63) / 64 * 64;
  }
  std::int64_t right_bytes(std::int64_t k, std::int64_t n) const override {
    return (slivers(n, kColumns) * right_sliver(k) + 63) / 64 * 64;
  }

  std::int64_t right_offset(std::int64_t k, std::int64_t column) const override {
    return column % kColumns == 0 ? column / kColumns * right_sliver(k) : -1;
  }

  void pack_left(std::int64_t m, std::int64_t k, const void* a, std::int64_t stride, void* packed) const override {
    const float most = steps_most(k);
    std::vector<Bf16> edge;
    for (std::int64_t row = 0; row < m; row += kRows) {
      const Bf16* source = static_cast<const Bf16*>(a) + row;
      char* target = static_cast<char*>(packed) + row / kRows * left_sliver(k);
      if (m - row >= kRows) {
        pack_rows(k, most, source, stride, target);
        continue;
      }
      edge.assign(static_cast<std::size_t>(k * kRows), 0);
      for (std::int64_t depth = 0; depth < k; ++depth)
        std::copy_n(source + depth * stride, m - row, edge.begin() + depth * kRows);
      pack_rows(k, most, edge.data(), kRows, target);
    }
  }

  DRYFLY_AVX2 void pack_right(std::int64_t k, std::int64_t n, const void* b, std::int64_t stride,
                              void* packed) const override {
    const float most = steps_most(k);
    for (std::int64_t column = 0; column < n; column += kColumns) {
      char* target = static_cast<char*>(packed) + column / kColumns * right_sliver(k);
      if (n - column < kColumns || k % 2 != 0) std::memset(target, 0, static_cast<std::size_t>(right_sliver(k)));
      auto* steps = reinterpret_cast<float*>(target);
      for (std::int64_t j = 0; j < std::min(kColumns, n - column); ++j) {
        const Bf16* source = static_cast<const Bf16*>(b) + (column + j) * stride;
        Bf16 largest = 0;
        for (std::int64_t depth = 0; depth < k; ++depth)
          largest = std::max(largest, static_cast<Bf16>(source[depth] & 0x7fff));
        const Steps found = steps_for(largest, most);
        steps[j] = found.step;
        auto* pairs = reinterpret_cast<std::int16_t*>(target + kRightHeader) + 2 * j;
        for (std::int64_t depth = 0; depth < k; ++depth)
          pairs[depth / 2 * 2 * kColumns + depth % 2] =
              static_cast<std::int16_t>(_mm_cvtss_si32(_mm_set_ss(to_float(source[depth]) * found.inverse)));
      }
    }
  }

  void subtract(std::int64_t m, std::int64_t n, std::int64_t k, const void* left, const void* right, void* c,
                std::int64_t stride, Zeros zeros) override {
    const std::int64_t cached = std::max<std::int64_t>(1, kCached / left_sliver(k)) * kRows;
    for (std::int64_t begin = 0; begin < m; begin += cached)
      for (std::int64_t column = 0; column < n; column += kColumns)
        for (std::int64_t row = begin; row < std::min(m, begin + cached); row += kRows) {
          // A triangle's rows or columns end at the diagonal.
          const std::int64_t end = zeros == Zeros::above_left_diagonal    ? row + kRows
                                   : zeros == Zeros::below_right_diagonal ? column + kColumns
                                                                          : k;
          const std::int64_t rows = std::min(kRows, m - row), columns = std::min(kColumns, n - column);
          const char* rows_of_left = static_cast<const char*>(left) + row / kRows * left_sliver(k);
          const char* columns_of_right = static_cast<const char*>(right) + column / kColumns * right_sliver(k);
          Bf16* target = static_cast<Bf16*>(c) + row + column * stride;
          const std::int64_t pairs = pairs_of(std::min(k, end));
          if (rows == kRows && columns == kColumns) {
            tile(pairs, rows_of_left, columns_of_right, target, stride);
            continue;
          }
          Bf16 edge[kRows * kColumns] = {};
          for (std::int64_t j = 0; j < columns; ++j) std::copy_n(target + j * stride, rows, edge + j * kRows);
          tile(pairs, rows_of_left, columns_of_right, edge, kRows);
          for (std::int64_t j = 0; j < columns; ++j) std::copy_n(edge + j * kRows, rows, target + j * stride);
        }
  }

  void diagonal_products(std::int64_t row, std::int64_t column, std::int64_t count, std::int64_t k, std::int64_t,
                         const void* left, const void* right, double* sums) const override {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t r = (row + i) % kRows, c = (column + i) % kColumns;
      const char* rows = static_cast<const char*>(left) + (row + i) / kRows * left_sliver(k);
      const char* columns = static_cast<const char*>(right) + (column + i) / kColumns * right_sliver(k);
      const auto* a = reinterpret_cast<const std::int16_t*>(rows + kLeftHeader) + 2 * r;
      const auto* b = reinterpret_cast<const std::int16_t*>(columns + kRightHeader) + 2 * c;
      std::int32_t sum = 0;
      for (std::int64_t pair = 0; pair < pairs_of(k); ++pair, a += 2 * kRows, b += 2 * kColumns)
        sum += a[0] * b[0] + a[1] * b[1];
      sums[i] =
          double{reinterpret_cast<const float*>(rows)[r]} * double{reinterpret_cast<const float*>(columns)[c]} * sum;
    }
  }

  Precision precision() const override { return Precision::bf16; }
  std::string description() const override { return "dryfly's own for AVX2"; }
};

}  // namespace

std::unique_ptr<Kernel> avx2_kernel() { return std::make_unique<Avx2Kernel>(); }

}  // namespace dryfly::mxp
