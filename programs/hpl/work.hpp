// The solvers' computing as dryfly is told of it, so that `dryfly run --compute model` can time it by the rates of the
// simulated machine.
#pragma once

#include <cstdint>

#include "dryfly/work.h"

namespace dryfly::hpl {

// Whether results are not wanted (--skip-numerics). The same for the whole run, because it is asked after MPI_Init.
inline bool numerics_skipped() {
  static const bool kSkipped = dryfly_work_mode_now() == DRYFLY_WORK_SKIPPED;
  return kSkipped;
}

inline bool kernels_are_modelled() { return dryfly_work_mode_now() != DRYFLY_WORK_UNTIMED; }

// Who does it: whichever of a rank's processors and GPUs is faster with it; the processors, with what lies in their
// memory; or a kernel, whose work was told when it was launched.
enum class WorkOf { fastest, processors, kernel };

inline void announce(WorkOf whose, int kind, int precision, std::int64_t m, std::int64_t n, std::int64_t k) {
  if (whose == WorkOf::fastest) dryfly_work_announce(kind, precision, m, n, k);
  if (whose == WorkOf::processors) dryfly_work_announce_on_processor(kind, precision, m, n, k);
}

// Each returns whether the work is to be done.
inline bool product(std::int64_t m, std::int64_t n, std::int64_t k, int precision, WorkOf whose = WorkOf::fastest) {
  announce(whose, DRYFLY_GEMM, precision, m, n, k);
  return !numerics_skipped();
}
inline bool triangular_solve(std::int64_t m, std::int64_t n, int precision, WorkOf whose = WorkOf::fastest) {
  announce(whose, DRYFLY_TRSM, precision, m, n, 0);
  return !numerics_skipped();
}
inline bool memory_traffic(std::int64_t bytes, WorkOf whose = WorkOf::fastest) {
  announce(whose, DRYFLY_MEMORY, DRYFLY_FP64, bytes, 0, 0);
  return !numerics_skipped();
}
inline bool arithmetic(std::int64_t operations, int precision, WorkOf whose = WorkOf::fastest) {
  announce(whose, DRYFLY_ARITHMETIC, precision, operations, 0, 0);
  return !numerics_skipped();
}

// What a solver ends with when it has not solved: neither passed (0), failed (1) nor bad input (2).
constexpr int kNotSolved = 4;

}  // namespace dryfly::hpl
