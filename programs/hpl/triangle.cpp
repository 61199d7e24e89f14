#include "triangle.hpp"

#include <algorithm>

#include "work.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#define DRYFLY_WIDE_REGISTERS 1
#endif

namespace dryfly::hpl {
namespace {

constexpr std::int64_t kGroup = 8;   // rows that are solved together: 16 registers of sums
constexpr std::int64_t kStrip = 16;  // columns

std::int64_t groups(std::int64_t width) { return (width + kGroup - 1) / kGroup; }

#ifdef DRYFLY_WIDE_REGISTERS

using Lane = double __attribute__((vector_size(64), aligned(64), may_alias));

struct alignas(64) Row {
  double value[kStrip];
};

bool has_wide_registers() {
  static const bool kThere = __builtin_cpu_supports("avx512f");
  return kThere;
}

// `strip` holds groups(width) * kGroup rows of kStrip columns.
__attribute__((target("avx512f"))) void solve_strip(const double* packed, std::int64_t width, Lane* strip) {
  for (std::int64_t group = 0; group < groups(width); ++group) {
    Lane* rows = strip + 2 * kGroup * group;
    Lane left[kGroup], right[kGroup];
    for (std::int64_t r = 0; r < kGroup; ++r) left[r] = rows[2 * r], right[r] = rows[2 * r + 1];
    for (std::int64_t k = 0; k < kGroup * group; ++k, packed += kGroup) {
      const Lane known_left = strip[2 * k], known_right = strip[2 * k + 1];
#pragma GCC unroll 8
      for (std::int64_t r = 0; r < kGroup; ++r) {
        left[r] -= packed[r] * known_left;
        right[r] -= packed[r] * known_right;
      }
    }
#pragma GCC unroll 8
    for (std::int64_t k = 0; k < kGroup; ++k, packed += kGroup)
#pragma GCC unroll 8
      for (std::int64_t r = k + 1; r < kGroup; ++r) {
        left[r] -= packed[r] * left[k];
        right[r] -= packed[r] * right[k];
      }
    for (std::int64_t r = 0; r < kGroup; ++r) rows[2 * r] = left[r], rows[2 * r + 1] = right[r];
  }
}

#else

bool has_wide_registers() { return false; }

#endif

}  // namespace

UnitLowerSolver::UnitLowerSolver(const Blas& blas, const double* triangle, std::int64_t width, bool stored_transposed)
    : blas_(blas), triangle_(triangle), width_(width), stored_transposed_(stored_transposed) {
  if (!has_wide_registers() || numerics_skipped()) return;
  for (std::int64_t group = 0; group < groups(width); ++group)
    for (std::int64_t k = 0; k < kGroup * (group + 1); ++k)
      for (std::int64_t row = kGroup * group; row < kGroup * (group + 1); ++row) {
        const bool inside = row < width && k < row;
        packed_.push_back(!inside ? 0.0 : stored_transposed ? triangle[k + row * width] : triangle[row + k * width]);
      }
}

void UnitLowerSolver::solve(double* right, std::int64_t columns, std::int64_t stride, bool transposed_right) const {
  if (transposed_right)
    return blas_.solve_unit_lower_right(width_, columns, triangle_, width_, stored_transposed_, right, stride);
  if (!has_wide_registers())
    return blas_.solve_unit_lower(width_, columns, triangle_, width_, stored_transposed_, right, stride);
  if (columns == 0 || !triangular_solve(width_, columns, DRYFLY_FP64, blas_.whose())) return;
#ifdef DRYFLY_WIDE_REGISTERS
  std::vector<Row> strip(static_cast<std::size_t>(kGroup * groups(width_)));
  double* turned = strip.front().value;
  for (std::int64_t first = 0; first < columns; first += kStrip) {
    const std::int64_t count = std::min(kStrip, columns - first);
    for (std::int64_t c = 0; c < count; ++c)
      for (std::int64_t r = 0; r < width_; ++r) turned[r * kStrip + c] = right[r + (first + c) * stride];
    solve_strip(packed_.data(), width_, reinterpret_cast<Lane*>(turned));
    for (std::int64_t c = 0; c < count; ++c)
      for (std::int64_t r = 0; r < width_; ++r) right[r + (first + c) * stride] = turned[r * kStrip + c];
  }
#endif
}

}  // namespace dryfly::hpl
