#include "kernel.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "../hpl/generator.hpp"
#include "diagonal.hpp"
#include "kernel_amx.hpp"
#include "tiles_software.hpp"

using namespace dryfly::mxp;

namespace {

std::vector<double> random(std::int64_t count, std::uint64_t seed) {
  std::vector<double> values(static_cast<std::size_t>(count));
  dryfly::hpl::Generator(seed).fill(0, count, values.data());
  return values;
}

std::vector<Bf16> rounded(const std::vector<double>& values) {
  std::vector<Bf16> result;
  for (const double value : values) result.push_back(from_float<Bf16>(static_cast<float>(value)));
  return result;
}

// Memory that begins at a cache line, as the kernel is given.
struct Room {
  explicit Room(std::int64_t bytes) : storage(static_cast<std::size_t>(bytes + 64)) {}
  void* data() {
    return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(storage.data()) + 63) & ~std::uintptr_t{63});
  }
  std::vector<char> storage;
};

void subtract_plainly(std::int64_t rows, std::int64_t columns, const float* product, Bf16* c, std::int64_t stride) {
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < rows; ++i)
      c[i + j * stride] = from_float<Bf16>(to_float(c[i + j * stride]) - product[i + 32 * j]);
}

// dryfly's own: that for AMX with the tiles in software on any processor, and what this processor has.
std::vector<std::unique_ptr<Kernel>> own_kernels() {
  std::vector<std::unique_ptr<Kernel>> kernels;
  kernels.push_back(std::make_unique<AmxKernel<SoftwareTiles, subtract_plainly>>());
  if (missing_for_avx512_bf16(this_processor()).empty()) {
    kernels.push_back(avx512_bf16_kernel());
    kernels.push_back(std::make_unique<AmxKernel<SoftwareTiles, subtract_block>>());
  }
  if (missing_for_amx(this_processor()).empty()) kernels.push_back(amx_kernel());
  if (missing_for_avx2(this_processor()).empty()) kernels.push_back(avx2_kernel());
  return kernels;
}

// What a kernel multiplies in the place of `count` elements, `apart` from each other: themselves, or with AVX2 whole
// numbers of the step of which k squares of the largest element fit into 31 bits.
std::vector<double> multiplied(const Kernel& kernel, const std::vector<Bf16>& all, std::int64_t first,
                               std::int64_t apart, std::int64_t count) {
  std::vector<double> values;
  float largest = 0;
  for (std::int64_t d = 0; d < count; ++d) {
    const float value = to_float(all[static_cast<std::size_t>(first + d * apart)]);
    values.push_back(value);
    largest = std::max(largest, std::fabs(value));
  }
  if (kernel.description() != "dryfly's own for AVX2" || largest == 0) return values;
  const float most =
      std::min(32767.0f, static_cast<float>(std::floor(std::sqrt((0x1p31 - 1) / static_cast<double>(count)))));
  const float steps = most / largest;  // in FP32, because near a tie the last bit decides
  for (double& value : values) value = std::nearbyint(static_cast<float>(value) * steps) * double{largest / most};
  return values;
}

void require_product(Kernel& kernel, std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::int64_t stride = m + 3;
  const auto left = rounded(random(m * k, 1)), right = rounded(random(k * n, 2));
  const auto before = rounded(random(stride * n, 3));
  auto c = before;
  Room packed_left(kernel.left_bytes(m, k)), packed_right(kernel.right_bytes(k, n));
  kernel.pack_left(m, k, left.data(), m, packed_left.data());
  kernel.pack_right(k, n, right.data(), k, packed_right.data());
  kernel.subtract(m, n, k, packed_left.data(), packed_right.data(), c.data(), stride, Zeros::none);
  std::vector<std::vector<double>> rows;
  for (std::int64_t i = 0; i < m; ++i) rows.push_back(multiplied(kernel, left, i, m, k));
  double worst = 0;
  bool rest_kept = true;
  for (std::int64_t j = 0; j < n; ++j) {
    const std::vector<double> column = multiplied(kernel, right, j * k, 1, k);
    for (std::int64_t i = 0; i < stride; ++i) {
      const auto at = static_cast<std::size_t>(i + j * stride);
      double expected = to_float(before[at]);
      for (std::size_t d = 0; i < m && d < column.size(); ++d)
        expected -= rows[static_cast<std::size_t>(i)][d] * column[d];
      if (i < m)
        worst = std::max(worst, std::fabs(to_float(c[at]) - expected) / (std::fabs(expected) + 1e-3));
      else
        rest_kept = rest_kept && c[at] == before[at];
    }
  }
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  CHECK(worst < 0x1p-8);  // half a unit in the last of 8 bits, and a little for sums that cancel
  CHECK(rest_kept);
}

void require_triangle(Kernel& kernel, Zeros zeros) {
  const std::int64_t n = 101;
  const auto full = rounded(random(n * n, 4)), other = rounded(random(n * n, 5));
  const bool is_left = zeros == Zeros::above_left_diagonal;
  auto triangle = full;
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < n; ++i)
      if (is_left ? i < j : i > j) triangle[static_cast<std::size_t>(i + j * n)] = 0;
  Room left(kernel.left_bytes(n, n)), right(kernel.right_bytes(n, n));
  kernel.pack_left(n, n, (is_left ? triangle : other).data(), n, left.data());
  kernel.pack_right(n, n, (is_left ? other : triangle).data(), n, right.data());
  auto short_way = full, long_way = full;
  kernel.subtract(n, n, n, left.data(), right.data(), short_way.data(), n, zeros);
  kernel.subtract(n, n, n, left.data(), right.data(), long_way.data(), n, Zeros::none);
  CHECK(short_way == long_way);
  std::vector<double> products(3);
  kernel.diagonal_products(49, 49, 3, n, n, left.data(), right.data(), products.data());
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto row = multiplied(kernel, is_left ? triangle : other, 49 + i, n, n);
    const auto column = multiplied(kernel, is_left ? other : triangle, (49 + i) * n, 1, n);
    CHECK(products[static_cast<std::size_t>(i)] ==
          doctest::Approx(std::inner_product(row.begin(), row.end(), column.begin(), 0.0)).epsilon(1e-4));
  }
}

}  // namespace

TEST_CASE("BF16 is rounded to nearest, ties to even, and keeps infinity and NaN") {
  CHECK(to_float(from_float<Bf16>(1.0f + 0x1p-8f)) == 1.0f);              // a tie, 1 is even
  CHECK(to_float(from_float<Bf16>(1.0f + 0x3p-8f)) == 1.0f + 0x1p-6f);    // a tie, up to the even one
  CHECK(to_float(from_float<Bf16>(1.0f + 0x1.1p-8f)) == 1.0f + 0x1p-7f);  // more than a tie
  CHECK(to_float(from_float<Bf16>(-3.0f)) == -3.0f);
  CHECK(std::isinf(to_float(from_float<Bf16>(3.4e38f * 10))));
  CHECK(std::isnan(to_float(from_float<Bf16>(NAN))));
}

TEST_CASE("FP16 is rounded to nearest, ties to even, below the normal numbers too, and keeps infinity and NaN") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<Half>(bits);
    const float value = to_float(half);
    if ((bits & 0x7fff) > 0x7c00) {
      CHECK(std::isnan(value));
      CHECK(std::isnan(to_float(from_float<Half>(value))));
      continue;
    }
    // The value from the definition: sign, exponent of 5 bits, fraction of 10.
    const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
    const float size = exponent == 31  ? INFINITY
                       : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                       : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
    REQUIRE(value == ((bits & 0x8000) != 0 ? -size : size));
    REQUIRE(static_cast<std::uint32_t>(from_float<Half>(value)) == bits);
    if (exponent == 31 || (bits & 0x7fff) == 0x7bff) continue;
    // Half way to the next: to the even one; a little more or less: to the nearer one.
    const float next = to_float(static_cast<Half>(bits + 1)), middle = (value + next) / 2;
    REQUIRE(static_cast<std::uint32_t>(from_float<Half>(middle)) == bits + (bits & 1));
    REQUIRE(static_cast<std::uint32_t>(from_float<Half>(std::nextafter(middle, value))) == bits);
    REQUIRE(static_cast<std::uint32_t>(from_float<Half>(std::nextafter(middle, next))) == bits + 1);
  }
  CHECK(to_float(from_float<Half>(65519.0f)) == 65504.0f);
  CHECK(std::isinf(to_float(from_float<Half>(65520.0f))));
  CHECK(std::isinf(to_float(from_float<Half>(1e30f))));
  CHECK(to_float(from_float<Half>(1e-9f)) == 0.0f);
}

TEST_CASE("the own kernels subtract the product in every size around their tiles, and write nothing else") {
  std::size_t number = 0;
  for (const auto& kernel : own_kernels()) {
    ++number;
    CAPTURE(number);
    for (const std::int64_t m : {1, 15, 33, 48, 49, 97})
      for (const std::int64_t n : {1, 8, 13, 32, 65})
        for (const std::int64_t k : {1, 2, 17, 64, 71}) require_product(*kernel, m, n, k);
    require_product(*kernel, 1030, 3, 640);  // more of L than stays in the second cache
  }
}

TEST_CASE("the own kernels can begin at a later column of U where they say so") {
  std::size_t number = 0;
  for (const auto& kernel : own_kernels()) {
    ++number;
    CAPTURE(number);
    const std::int64_t m = 40, k = 50, n = 100, first = 64;
    const auto left = rounded(random(m * k, 1)), right = rounded(random(k * n, 2));
    auto whole = rounded(random(m * n, 3)), parts = whole;
    Room packed_left(kernel->left_bytes(m, k)), packed_right(kernel->right_bytes(k, n));
    kernel->pack_left(m, k, left.data(), m, packed_left.data());
    kernel->pack_right(k, n, right.data(), k, packed_right.data());
    const char* packed = static_cast<const char*>(packed_right.data());
    REQUIRE(kernel->right_offset(k, first) > 0);
    CHECK(kernel->right_offset(k, first + 1) < 0);
    kernel->subtract(m, n, k, packed_left.data(), packed, whole.data(), m, Zeros::none);
    kernel->subtract(m, first, k, packed_left.data(), packed, parts.data(), m, Zeros::none);
    kernel->subtract(m, n - first, k, packed_left.data(), packed + kernel->right_offset(k, first),
                     parts.data() + m * first, m, Zeros::none);
    CHECK(whole == parts);
  }
}

TEST_CASE("the own kernels' triangles leave out zeros only") {
  std::size_t number = 0;
  for (const auto& kernel : own_kernels()) {
    ++number;
    CAPTURE(number);
    for (const Zeros zeros : {Zeros::above_left_diagonal, Zeros::below_right_diagonal})
      require_triangle(*kernel, zeros);
  }
}

TEST_CASE("the kernel for AVX2 loses less of a product than the rounding to BF16 of what it multiplies") {
  if (!missing_for_avx2(this_processor()).empty()) return;
  const std::int64_t m = 48, n = 40;
  for (const std::int64_t k : {64, 256, 768, 2048}) {
    const auto left = random(m * k, 1), right = random(k * n, 2);
    const auto stored_left = rounded(left), stored_right = rounded(right);
    double by_storing = 0, by_multiplying = 0;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        const auto row = multiplied(*avx2_kernel(), stored_left, i, m, k);
        const auto column = multiplied(*avx2_kernel(), stored_right, j * k, 1, k);
        double exact = 0, stored = 0, whole = 0;
        for (std::int64_t d = 0; d < k; ++d) {
          const auto l = static_cast<std::size_t>(i + d * m), r = static_cast<std::size_t>(d + j * k);
          exact += left[l] * right[r];
          stored += double{to_float(stored_left[l])} * to_float(stored_right[r]);
          whole += row[static_cast<std::size_t>(d)] * column[static_cast<std::size_t>(d)];
        }
        by_storing += (stored - exact) * (stored - exact);
        by_multiplying += (whole - stored) * (whole - stored);
      }
    CAPTURE(k);
    CHECK(by_multiplying < by_storing);
  }
}

TEST_CASE("the kernel for AVX2 takes zeros, tiny and huge elements, and passes infinity and NaN on as NaN") {
  if (!missing_for_avx2(this_processor()).empty()) return;
  const auto kernel = avx2_kernel();
  const std::int64_t n = 30;
  const auto difference = [&](float first, float second) {  // 1 - first * second, at (25, 3)
    std::vector<Bf16> left(static_cast<std::size_t>(n * n)), right = left, c(left.size(), from_float<Bf16>(1.0f));
    left[25 + 7 * n] = from_float<Bf16>(first), right[7 + 3 * n] = from_float<Bf16>(second);
    Room packed_left(kernel->left_bytes(n, n)), packed_right(kernel->right_bytes(n, n));
    kernel->pack_left(n, n, left.data(), n, packed_left.data());
    kernel->pack_right(n, n, right.data(), n, packed_right.data());
    kernel->subtract(n, n, n, packed_left.data(), packed_right.data(), c.data(), n, Zeros::none);
    CHECK(to_float(c[26 + 2 * n]) == 1);
    return to_float(c[25 + 3 * n]);
  };
  CHECK(difference(0, 0) == 1);
  CHECK(difference(3, -2) == 7);
  CHECK(difference(0x1p100f, 0x1p-99f) == -1);
  CHECK(difference(0x1p-110f, 0x1p110f) == doctest::Approx(0));
  CHECK(difference(0x1p-126f, 0x1p126f) == 1);  // too small for a step
  CHECK(std::isnan(difference(NAN, 1)));
  CHECK(std::isnan(difference(1, INFINITY)));
}

TEST_CASE("a diagonal block's inverses solve its system") {
  for (const std::int64_t n : {1, 2, 5, 64, 103}) {
    auto values = random(n * n, 6);
    for (std::int64_t i = 0; i < n; ++i) values[static_cast<std::size_t>(i * (n + 1))] += static_cast<double>(n);
    const auto x = random(n, 7);
    std::vector<float> block(values.begin(), values.end()), right(static_cast<std::size_t>(n));
    for (std::int64_t i = 0; i < n; ++i) {
      double sum = 0;
      for (std::int64_t j = 0; j < n; ++j)
        sum += values[static_cast<std::size_t>(i + j * n)] * x[static_cast<std::size_t>(j)];
      right[static_cast<std::size_t>(i)] = static_cast<float>(sum);
    }
    factor_and_invert(n, block.data());
    apply_lower(n, block.data(), right.data());
    apply_upper(n, block.data(), right.data());
    CAPTURE(n);
    for (std::int64_t i = 0; i < n; ++i)
      CHECK(std::fabs(right[static_cast<std::size_t>(i)] - x[static_cast<std::size_t>(i)]) < 1e-5);
  }
}
