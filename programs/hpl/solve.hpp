// After the factorisation: the triangular solve, and HPL's test of the result against the matrix made anew.
#pragma once

#include <vector>

#include "blas.hpp"
#include "matrix.hpp"

namespace dryfly::hpl {

// x with U x = y, where [U | y] is what the factorisation has left; every process gets all of x.
std::vector<double> back_substitute(const Grid& grid, const Blas& blas, const Matrix& matrix);

struct Residual {
  double difference = 0;  // ||A x - b|| in the maximum norm
  double a_infinity = 0, a_one = 0, x_infinity = 0, b_infinity = 0;
  double scaled = 0;  // HPL's figure: below the threshold, 16 as a rule, means passed

  bool passed(double threshold) const { return scaled < threshold; }  // false for NaN
};

// A is generated again by stripes, so it needs no second copy.
Residual check(const Grid& grid, const Matrix& matrix, const Generator& generator, const std::vector<double>& x);

}  // namespace dryfly::hpl
