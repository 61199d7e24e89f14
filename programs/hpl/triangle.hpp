// U := L1^-1 U with a narrow triangle and very many columns. Vendors' dtrsm reaches a third of their dgemm at this
// shape; here 16 columns at a time are turned so that a row of them is two registers, and solved within the first
// cache. Needs AVX-512; without it, and for U stored by rows, the BLAS is used.
#pragma once

#include <cstdint>
#include <vector>

#include "blas.hpp"

namespace dryfly::hpl {

class UnitLowerSolver {
 public:
  UnitLowerSolver(const Blas& blas, const double* triangle, std::int64_t width, bool stored_transposed);

  // `right` is width x columns, by columns or (transposed) by rows.
  void solve(double* right, std::int64_t columns, std::int64_t stride, bool transposed_right) const;

 private:
  const Blas& blas_;
  const double* triangle_;
  std::int64_t width_;
  bool stored_transposed_;
  std::vector<double> packed_;  // rows in groups, by columns within a group
};

}  // namespace dryfly::hpl
