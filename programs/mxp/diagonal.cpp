#include "diagonal.hpp"

#include <algorithm>
#include <vector>

#define DRYFLY_WIDEST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))

namespace dryfly::mxp {
namespace {

// target += sum of factor[c] * column c of `a`, for four columns at once: the target is then read once for four.
DRYFLY_WIDEST void add_columns(std::int64_t count, const float* a, std::int64_t stride, const float* factor,
                               float* target) {
  const float f0 = factor[0], f1 = factor[1], f2 = factor[2], f3 = factor[3];
  for (std::int64_t i = 0; i < count; ++i)
    target[i] += f0 * a[i] + f1 * a[i + stride] + f2 * a[i + 2 * stride] + f3 * a[i + 3 * stride];
}

DRYFLY_WIDEST void add_column(std::int64_t count, const float* a, float factor, float* target) {
  for (std::int64_t i = 0; i < count; ++i) target[i] += factor * a[i];
}

// Column j takes the columns before it, four at a time; inside of four it goes one by one.
void factor(std::int64_t n, float* a) {
  for (std::int64_t j = 0; j < n; ++j) {
    float* column = a + j * n;
    for (std::int64_t k = 0; k < j; k += 4) {
      const std::int64_t end = std::min(k + 4, j);
      float factors[4];
      for (std::int64_t c = k; c < end; ++c) {
        factors[c - k] = -column[c];
        add_column(std::min(k + 4, n) - (c + 1), a + c * n + c + 1, factors[c - k], column + c + 1);
      }
      const std::int64_t below = k + 4;
      if (below >= n) continue;
      if (end == below)
        add_columns(n - below, a + k * n + below, n, factors, column + below);
      else
        for (std::int64_t c = k; c < end; ++c) add_column(n - below, a + c * n + below, factors[c - k], column + below);
    }
    const float pivot = 1.0f / column[j];
    for (std::int64_t i = j + 1; i < n; ++i) column[i] *= pivot;
  }
}

// Column j of U^-1 is -U^-1(columns before) u_j / u_jj.
void invert_upper(std::int64_t n, float* a, std::vector<float>& work) {
  for (std::int64_t j = 0; j < n; ++j) {
    float* column = a + j * n;
    const float pivot = 1.0f / column[j];
    for (std::int64_t i = 0; i < j; ++i) work[static_cast<std::size_t>(i)] = -column[i] * pivot;
    std::fill_n(column, j, 0.0f);
    column[j] = pivot;
    for (std::int64_t k = 0; k < j; ++k) add_column(k + 1, a + k * n, work[static_cast<std::size_t>(k)], column);
  }
}

// Column j of L^-1 is -L^-1(columns after) l_j; the diagonal of ones is not stored.
void invert_lower(std::int64_t n, float* a, std::vector<float>& work) {
  for (std::int64_t j = n - 1; j >= 0; --j) {
    float* column = a + j * n;
    for (std::int64_t i = j + 1; i < n; ++i) {
      work[static_cast<std::size_t>(i)] = -column[i];
      column[i] = -column[i];
    }
    for (std::int64_t k = j + 1; k < n; ++k)
      add_column(n - k - 1, a + k * n + k + 1, work[static_cast<std::size_t>(k)], column + k + 1);
  }
}

}  // namespace

void factor_and_invert(std::int64_t n, float* a) {
  std::vector<float> work(static_cast<std::size_t>(n));
  factor(n, a);
  invert_lower(n, a, work);
  invert_upper(n, a, work);
}

void apply_lower(std::int64_t n, const float* inverses, float* x) {
  for (std::int64_t j = n - 1; j >= 0; --j) add_column(n - j - 1, inverses + j * n + j + 1, x[j], x + j + 1);
}

void apply_upper(std::int64_t n, const float* inverses, float* x) {
  for (std::int64_t j = 0; j < n; ++j) {
    const float factor = x[j];
    add_column(j, inverses + j * n, factor, x);
    x[j] = factor * inverses[j + j * n];
  }
}

}  // namespace dryfly::mxp
