// The one product that takes nearly all the time, C := C - L U, behind a small interface: dryfly's own kernels for
// AMX-BF16, AVX512-BF16 and AVX2, or the vendor's BF16 GEMM or SGEMM. L and U are packed once for each panel into the
// form that the kernel reads, and travel between the processes in it. All accumulate in FP32, that for AVX2 in whole
// numbers of 32 bits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../hpl/blas.hpp"
#include "element.hpp"
#include "processor.hpp"

namespace dryfly::mxp {

enum class KernelKind { chosen, amx, avx512_bf16, avx2, mkl, sgemm };

struct KernelChoice {
  KernelKind kind = KernelKind::chosen;
  Precision precision = Precision::bf16;
  hpl::BlasChoice blas;
};

// What is known to be zero in a factor, so that a kernel may leave it out.
enum class Zeros { none, above_left_diagonal, below_right_diagonal };

// Matrices are stored by columns in the kernel's precision; strides count elements.
class Kernel {
 public:
  virtual ~Kernel() = default;

  // Whole numbers of 64 bytes.
  virtual std::int64_t left_bytes(std::int64_t m, std::int64_t k) const = 0;
  virtual std::int64_t right_bytes(std::int64_t k, std::int64_t n) const = 0;

  virtual void pack_left(std::int64_t m, std::int64_t k, const void* a, std::int64_t stride, void* packed) const = 0;
  virtual void pack_right(std::int64_t k, std::int64_t n, const void* b, std::int64_t stride, void* packed) const = 0;

  // Where the columns of U from `column` on begin, if they can be used alone; a negative number says they cannot.
  virtual std::int64_t right_offset(std::int64_t k, std::int64_t column) const = 0;

  // C := C - L U, C being m x n and k the depth.
  virtual void subtract(std::int64_t m, std::int64_t n, std::int64_t k, const void* left, const void* right, void* c,
                        std::int64_t stride, Zeros zeros) = 0;

  // sums[i] := row (row + i) of L, which has m rows, times column (column + i) of U, for i < count.
  virtual void diagonal_products(std::int64_t row, std::int64_t column, std::int64_t count, std::int64_t k,
                                 std::int64_t m, const void* left, const void* right, double* sums) const = 0;

  virtual Precision precision() const = 0;
  virtual std::string description() const = 0;
  virtual bool is_threaded() const { return false; }  // whether --threads reaches it
};

// On failure `error` says why in one sentence, and nothing is returned.
std::unique_ptr<Kernel> choose_kernel(const KernelChoice& choice, std::string* error,
                                      const Processor& processor = this_processor());

// dryfly's own; only for a processor that has the instructions. Null: the compiler did not have those of AMX.
std::unique_ptr<Kernel> amx_kernel();
std::unique_ptr<Kernel> avx512_bf16_kernel();
std::unique_ptr<Kernel> avx2_kernel();

struct OwnKernel {
  KernelKind kind;
  const char* name;  // of --kernel
  std::string (*missing)(const Processor& processor);
  std::unique_ptr<Kernel> (*make)();
};
inline constexpr OwnKernel kOwnKernels[] = {
    {KernelKind::amx, "amx", missing_for_amx, amx_kernel},
    {KernelKind::avx512_bf16, "avx512-bf16", missing_for_avx512_bf16, avx512_bf16_kernel},
    {KernelKind::avx2, "avx2", missing_for_avx2, avx2_kernel},
};  // the fastest first

// C := C - product, rounded by AVX512-BF16, for a block of so many rows and columns, at most 32 of each. The product's
// columns are 32 long.
void subtract_block(std::int64_t rows, std::int64_t columns, const float* product, Bf16* c, std::int64_t stride);

}  // namespace dryfly::mxp
