#include "kernel.hpp"

#include <algorithm>
#include <cstring>

#define DRYFLY_WIDEST __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))

namespace dryfly::mxp {
namespace {

using Sgemm = void (*)(const char*, const char*, const int*, const int*, const int*, const float*, const float*,
                       const int*, const float*, const int*, const float*, float*, const int*);
// The same for BF16 and FP16.
using ShortGemm = void (*)(int, int, int, int, int, int, float, const void*, int, const void*, int, float, float*, int);
constexpr int kColumnMajor = 102, kPlain = 111;  // CBLAS's numbers
constexpr std::int64_t kChunk = 256;             // columns of C that are kept in FP32 at a time

std::int64_t rounded_up(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

template <class Element>
void copy_block(std::int64_t rows, std::int64_t columns, const void* source, std::int64_t stride, void* target) {
  for (std::int64_t j = 0; j < columns; ++j)
    std::memcpy(static_cast<Element*>(target) + j * rows, static_cast<const Element*>(source) + j * stride,
                static_cast<std::size_t>(rows) * sizeof(Element));
}

template <class Element>
void multiply_rows(std::int64_t row, std::int64_t column, std::int64_t count, std::int64_t k, std::int64_t m,
                   const void* left, const void* right, double* sums) {
  for (std::int64_t i = 0; i < count; ++i) {
    const Element* a = static_cast<const Element*>(left) + row + i;
    const Element* b = static_cast<const Element*>(right) + (column + i) * k;
    sums[i] = 0;
    for (std::int64_t depth = 0; depth < k; ++depth) sums[i] += to_float(a[depth * m]) * to_float(b[depth]);
  }
}

// Loops over what is stored in 16 bits, for one column, with the widest instructions that there are.
DRYFLY_WIDEST void subtract_column(std::int64_t count, const float* product, Bf16* c) {
  for (std::int64_t i = 0; i < count; ++i) c[i] = from_float<Bf16>(to_float(c[i]) - product[i]);
}
DRYFLY_WIDEST void subtract_column(std::int64_t count, const float* product, Half* c) {
  for (std::int64_t i = 0; i < count; ++i) c[i] = from_float<Half>(to_float(c[i]) - product[i]);
}
DRYFLY_WIDEST void widen_column(std::int64_t count, const Bf16* source, float* target) {
  for (std::int64_t i = 0; i < count; ++i) target[i] = to_float(source[i]);
}
DRYFLY_WIDEST void widen_column(std::int64_t count, const Half* source, float* target) {
  for (std::int64_t i = 0; i < count; ++i) target[i] = to_float(source[i]);
}

// C := C - product for a chunk of columns.
void subtract_chunk(Precision precision, std::int64_t m, std::int64_t n, const float* product, void* c,
                    std::int64_t stride) {
  for (std::int64_t j = 0; j < n; ++j)
    if (precision == Precision::bf16)
      subtract_column(m, product + j * m, static_cast<Bf16*>(c) + j * stride);
    else
      subtract_column(m, product + j * m, static_cast<Half*>(c) + j * stride);
}

const void* moved(const void* data, std::int64_t elements) { return static_cast<const Bf16*>(data) + elements; }
void* moved(void* data, std::int64_t elements) { return static_cast<Bf16*>(data) + elements; }

// What the two kernels of a BLAS share: L and U are packed as plain blocks, and a product comes in FP32 by chunks.
class BlasKernel : public Kernel {
 public:
  BlasKernel(Precision precision, std::string description)
      : precision_(precision), description_(std::move(description)) {}

  std::int64_t left_bytes(std::int64_t m, std::int64_t k) const override {
    return rounded_up(m * k * element_bytes(precision_));
  }
  std::int64_t right_bytes(std::int64_t k, std::int64_t n) const override { return left_bytes(k, n); }

  std::int64_t right_offset(std::int64_t k, std::int64_t column) const override {
    return column * k * element_bytes(precision_);
  }

  void pack_left(std::int64_t m, std::int64_t k, const void* a, std::int64_t stride, void* packed) const override {
    with_element(precision_, [&]<class Element>(Element*) { copy_block<Element>(m, k, a, stride, packed); });
  }
  void pack_right(std::int64_t k, std::int64_t n, const void* b, std::int64_t stride, void* packed) const override {
    pack_left(k, n, b, stride, packed);
  }

  void diagonal_products(std::int64_t row, std::int64_t column, std::int64_t count, std::int64_t k, std::int64_t m,
                         const void* left, const void* right, double* sums) const override {
    with_element(precision_,
                 [&]<class Element>(Element*) { multiply_rows<Element>(row, column, count, k, m, left, right, sums); });
  }

  Precision precision() const override { return precision_; }
  std::string description() const override { return description_; }
  bool is_threaded() const override { return true; }

 protected:
  std::vector<float> product_;

 private:
  Precision precision_;
  std::string description_;
};

class MklKernel final : public BlasKernel {
 public:
  MklKernel(Precision precision, ShortGemm gemm, const std::string& description)
      : BlasKernel(precision, description), gemm_(gemm) {}

  void subtract(std::int64_t m, std::int64_t n, std::int64_t k, const void* left, const void* right, void* c,
                std::int64_t stride, Zeros) override {
    if (m == 0 || n == 0) return;
    product_.resize(static_cast<std::size_t>(m * std::min(n, kChunk)));
    for (std::int64_t j = 0; j < n; j += kChunk) {
      const std::int64_t columns = std::min(kChunk, n - j);
      gemm_(kColumnMajor, kPlain, kPlain, static_cast<int>(m), static_cast<int>(columns), static_cast<int>(k), 1.0f,
            left, static_cast<int>(m), moved(right, j * k), static_cast<int>(k), 0.0f, product_.data(),
            static_cast<int>(m));
      subtract_chunk(precision(), m, columns, product_.data(), moved(c, j * stride), stride);
    }
  }

 private:
  ShortGemm gemm_;
};

class SgemmKernel final : public BlasKernel {
 public:
  SgemmKernel(Precision precision, Sgemm gemm, const std::string& blas)
      : BlasKernel(precision, "sgemm of " + blas), gemm_(gemm) {}

  void subtract(std::int64_t m, std::int64_t n, std::int64_t k, const void* left, const void* right, void* c,
                std::int64_t stride, Zeros) override {
    if (m == 0 || n == 0) return;
    if (precision() == Precision::fp32) {
      multiply(m, n, k, static_cast<const float*>(left), static_cast<const float*>(right), -1.0f, 1.0f,
               static_cast<float*>(c), stride);
      return;
    }
    widen(left, m * k, left_);
    product_.resize(static_cast<std::size_t>(m * std::min(n, kChunk)));
    for (std::int64_t j = 0; j < n; j += kChunk) {
      const std::int64_t columns = std::min(kChunk, n - j);
      widen(moved(right, j * k), k * columns, right_);
      multiply(m, columns, k, left_.data(), right_.data(), 1.0f, 0.0f, product_.data(), m);
      subtract_chunk(precision(), m, columns, product_.data(), moved(c, j * stride), stride);
    }
  }

 private:
  void widen(const void* source, std::int64_t count, std::vector<float>& target) const {
    target.resize(static_cast<std::size_t>(count));
    if (precision() == Precision::bf16)
      widen_column(count, static_cast<const Bf16*>(source), target.data());
    else
      widen_column(count, static_cast<const Half*>(source), target.data());
  }

  void multiply(std::int64_t m, std::int64_t n, std::int64_t k, const float* left, const float* right, float alpha,
                float beta, float* c, std::int64_t stride) const {
    const int rows = static_cast<int>(m), columns = static_cast<int>(n), depth = static_cast<int>(k);
    const int target_stride = static_cast<int>(stride);
    gemm_("N", "N", &rows, &columns, &depth, &alpha, left, &rows, right, &depth, &beta, c, &target_stride);
  }

  Sgemm gemm_;
  std::vector<float> left_, right_;
};

std::unique_ptr<Kernel> mkl_kernel(const KernelChoice& choice, std::string* error) {
  hpl::BlasChoice library = choice.blas;
  if (library.library.empty()) library.library = "mkl";
  const hpl::Blas blas = hpl::Blas::load(library, error);
  if (!error->empty()) return nullptr;
  const std::string name = choice.precision == Precision::bf16 ? "cblas_gemm_bf16bf16f32" : "cblas_gemm_f16f16f32";
  const auto gemm = reinterpret_cast<ShortGemm>(blas.symbol(name));
  if (gemm != nullptr) return std::make_unique<MklKernel>(choice.precision, gemm, name + " of " + blas.description());
  *error = "--kernel mkl: " + blas.description() + " has no " + name;
  return nullptr;
}

std::unique_ptr<Kernel> sgemm_kernel(const KernelChoice& choice, std::string* error) {
  const hpl::Blas blas = hpl::Blas::load(choice.blas, error);
  if (!error->empty()) return nullptr;
  const auto gemm = reinterpret_cast<Sgemm>(blas.symbol("sgemm_"));
  if (gemm != nullptr) return std::make_unique<SgemmKernel>(choice.precision, gemm, blas.description());
  *error = "--kernel sgemm: " + blas.description() + " has no sgemm_";
  return nullptr;
}

const OwnKernel* own_of(KernelKind kind) {
  const OwnKernel* found = std::ranges::find(kOwnKernels, kind, &OwnKernel::kind);
  return found == std::end(kOwnKernels) ? nullptr : found;
}

std::unique_ptr<Kernel> own_kernel(const OwnKernel& own, const Processor& processor, std::string* error) {
  std::string missing = own.missing(processor), others;
  if (missing.empty()) {
    if (auto kernel = own.make()) return kernel;
    missing = "the compiler of this program had no AMX-BF16";
  }
  for (const OwnKernel& other : kOwnKernels)
    if (&other > &own && other.missing(processor).empty()) others += std::string(other.name) + ", ";
  *error = std::string("--kernel ") + own.name + ": " + missing + "; accepted here are " + others + "mkl and sgemm";
  return nullptr;
}

// A vendor's library is chosen over an own kernel only where there is AVX-512 without its BF16: by the peaks its SGEMM
// is as fast as the kernel for AVX2 (not measured).
std::unique_ptr<Kernel> fastest_own_kernel(const Processor& processor) {
  std::string error;
  for (const OwnKernel& own : kOwnKernels) {
    if (own.kind == KernelKind::avx2 && has_avx512(processor)) break;
    if (auto kernel = own_kernel(own, processor, &error)) return kernel;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<Kernel> choose_kernel(const KernelChoice& choice, std::string* error, const Processor& processor) {
  const OwnKernel* own = own_of(choice.kind);
  if (choice.precision == Precision::fp32) {
    if (choice.kind == KernelKind::chosen || choice.kind == KernelKind::sgemm) return sgemm_kernel(choice, error);
    *error = "--precision fp32: its kernel is sgemm, and --kernel names another";
    return nullptr;
  }
  if (choice.precision == Precision::fp16 && own != nullptr) {
    *error = "--precision fp16: its kernels are sgemm and mkl, and --kernel names another";
    return nullptr;
  }
  if (own != nullptr) return own_kernel(*own, processor, error);
  if (choice.kind == KernelKind::mkl) return mkl_kernel(choice, error);
  if (choice.kind == KernelKind::sgemm || choice.precision == Precision::fp16) return sgemm_kernel(choice, error);
  if (auto kernel = fastest_own_kernel(processor)) return kernel;
  if (auto kernel = mkl_kernel(choice, error)) return kernel;
  error->clear();
  return sgemm_kernel(choice, error);
}

}  // namespace dryfly::mxp
