// The vendor's kernels behind one small interface: what the solver asks of a BLAS, loaded when the program starts.
//
// The solver is compiled without any BLAS. A library with the Fortran names of the reference BLAS is opened with
// dlopen: oneMKL, OpenBLAS, or whatever the user names.
#pragma once

#include <cstdint>
#include <string>

#include "work.hpp"

namespace dryfly::hpl {

// What the user asked for; both may be left as they are.
struct BlasChoice {
  std::string library;  // "mkl", "openblas", a path, or empty: the best that is found
  int threads = 1;
};

class Blas {
 public:
  // On failure `error` says why in one sentence and the object must not be used.
  static Blas load(const BlasChoice& choice, std::string* error);

  // The same library, whose work is told of as whose it is; dryfly::hpl::WorkOf::fastest without this.
  Blas of(WorkOf whose) const;
  WorkOf whose() const { return whose_; }

  // A first product, with which a library takes the memory that it works in. Kernels must not do that: one may be
  // called from within MPI, where dryfly's answer to the system call would wait for MPI.
  void take_memory() const;

  // C := C - op(A) op(B), C being m x n, op(A) m x k. `transposed_b`: B is stored n x k.
  void subtract_product(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, std::int64_t a_stride,
                        const double* b, std::int64_t b_stride, bool transposed_b, double* c,
                        std::int64_t c_stride) const;

  // B := L^-1 B (B is m x n, L unit lower m x m); `stored_transposed`: what is given is L^T.
  void solve_unit_lower(std::int64_t m, std::int64_t n, const double* l, std::int64_t l_stride, bool stored_transposed,
                        double* b, std::int64_t b_stride) const;

  // B := B L^-T, which is the same with B stored transposed (n x m).
  void solve_unit_lower_right(std::int64_t m, std::int64_t n, const double* l, std::int64_t l_stride,
                              bool stored_transposed, double* b, std::int64_t b_stride) const;

  // x := U^-1 x, U upper n x n.
  void solve_upper(std::int64_t n, const double* u, std::int64_t u_stride, double* x) const;

  const std::string& description() const { return description_; }

  // Another function of the library, by its name there; null: it has none.
  void* symbol(const std::string& name) const;

 private:
  using Gemm = void (*)(const char*, const char*, const int*, const int*, const int*, const double*, const double*,
                        const int*, const double*, const int*, const double*, double*, const int*);
  using Trsm = void (*)(const char*, const char*, const char*, const char*, const int*, const int*, const double*,
                        const double*, const int*, double*, const int*);
  using Trsv = void (*)(const char*, const char*, const char*, const int*, const double*, const int*, double*,
                        const int*);

  bool bind(void* library, const std::string& prefix);

  Gemm gemm_ = nullptr;
  Trsm trsm_ = nullptr;
  Trsv trsv_ = nullptr;
  WorkOf whose_ = WorkOf::fastest;
  std::string description_;
  void* library_ = nullptr;
  std::string prefix_;
};

}  // namespace dryfly::hpl
