// From the factors to a solution of FP64 accuracy: x = (L U)^-1 b, then corrections from residuals in FP64, either
// x += (L U)^-1 r (classic) or GMRES preconditioned with L U from the right. Vectors of length N are on every process.
#pragma once

#include <functional>
#include <vector>

#include "factor.hpp"

namespace dryfly::mxp {

enum class Refinement { classic, gmres };

struct RefinementOptions {
  Refinement kind = Refinement::classic;
  int steps_most = 50;
};

struct Solution {
  std::vector<double> x;
  std::vector<double> residuals;  // scaled as in the test: after the first solve, and whenever it was computed anew
  int steps = 0;                  // corrections, or GMRES iterations
};

// (L U)^-1 r in FP32; collective.
std::vector<double> apply_factors(const Factorisation& factors, const std::vector<double>& r);

// Ends when the residual is far enough below HPL's threshold, or does not fall any more.
Solution refine(const System& system, const Factorisation& factors, const RefinementOptions& options);

std::vector<double> difference(const System& system, const std::vector<double>& x);  // b - A x

}  // namespace dryfly::mxp
