// The diagonal block of a step, in FP32: factored without pivoting and inverted, so that what follows are products.
#pragma once

#include <cstdint>

namespace dryfly::mxp {

// In place, n x n by columns without gaps: A becomes the inverse of its unit lower factor (below the diagonal) and the
// inverse of its upper factor (on and above it).
void factor_and_invert(std::int64_t n, float* a);

// x := L^-1 x and x := U^-1 x with what that has left.
void apply_lower(std::int64_t n, const float* inverses, float* x);
void apply_upper(std::int64_t n, const float* inverses, float* x);

}  // namespace dryfly::mxp
