// Rates of the products of dryfly-mxp in one process, one after the other in each round: dryfly's own kernels with
// their packing ("own" is the fastest that this processor has), MKL's BF16 GEMM alone (into FP32, nothing packed or
// rounded), and SGEMM. Prints a line for each.
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "programs/hpl/generator.hpp"
#include "programs/mxp/kernel.hpp"

using namespace dryfly::mxp;

namespace {

constexpr std::int64_t kSize = 4032;  // rows and columns of C
using Clock = std::chrono::steady_clock;
using BfGemm = void (*)(int, int, int, int, int, int, float, const Bf16*, int, const Bf16*, int, float, float*, int);

template <class Element>
std::vector<Element> random(std::int64_t count, std::uint64_t seed) {
  std::vector<double> values(static_cast<std::size_t>(count));
  dryfly::hpl::Generator(seed).fill(0, count, values.data());
  std::vector<Element> result;
  for (const double value : values) result.push_back(from_float<Element>(static_cast<float>(value)));
  return result;
}

template <class Work>
void print_rate(const char* name, std::int64_t depth, const Work& work) {
  const auto begin = Clock::now();
  work();
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  std::printf("%s %lld %.6g\n", name, static_cast<long long>(depth),
              2.0 * static_cast<double>(kSize * kSize * depth) / seconds / 1e9);
  std::fflush(stdout);
}

template <class Element>
void measure(const char* name, Kernel& kernel, std::int64_t depth) {
  const auto left = random<Element>(kSize * depth, 1), right = random<Element>(kSize * depth, 2);
  auto c = random<Element>(kSize * kSize, 3);
  std::vector<float> packed_left(static_cast<std::size_t>(kernel.left_bytes(kSize, depth) / 4 + 16));
  std::vector<float> packed_right(static_cast<std::size_t>(kernel.right_bytes(depth, kSize) / 4 + 16));
  const auto aligned = [](std::vector<float>& room) {
    return reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(room.data()) + 63) & ~std::uintptr_t{63});
  };
  const auto work = [&] {
    kernel.pack_left(kSize, depth, left.data(), kSize, aligned(packed_left));
    kernel.pack_right(depth, kSize, right.data(), depth, aligned(packed_right));
    kernel.subtract(kSize, kSize, depth, aligned(packed_left), aligned(packed_right), c.data(), kSize, Zeros::none);
  };
  work();  // the first touch of the memory is not measured
  print_rate(name, depth, work);
}

void measure_mkl(std::int64_t depth) {
  const auto gemm = reinterpret_cast<BfGemm>(dlsym(RTLD_DEFAULT, "cblas_gemm_bf16bf16f32"));
  const auto left = random<Bf16>(kSize * depth, 1), right = random<Bf16>(kSize * depth, 2);
  std::vector<float> c(static_cast<std::size_t>(kSize * kSize));
  const int size = static_cast<int>(kSize), k = static_cast<int>(depth);
  const auto work = [&] {
    gemm(102, 111, 111, size, size, k, 1.0f, left.data(), size, right.data(), k, 0.0f, c.data(), size);
  };
  work();
  print_rate("mkl", depth, work);
}

std::unique_ptr<Kernel> required(const KernelChoice& choice) {
  std::string error;
  auto kernel = choose_kernel(choice, &error);
  if (kernel == nullptr) {
    std::fprintf(stderr, "bf16-kernel: %s\n", error.c_str());
    std::exit(2);
  }
  std::fprintf(stderr, "%s\n", kernel->description().c_str());
  return kernel;
}

}  // namespace

// Arguments: the library with MKL's GEMM, the library for SGEMM.
int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "bf16-kernel: its arguments are two libraries, MKL and one for SGEMM\n");
    return 2;
  }
  const Processor& processor = this_processor();
  std::vector<std::pair<std::string, std::unique_ptr<Kernel>>> own;
  for (const OwnKernel& each : kOwnKernels)
    if (each.missing(processor).empty())
      if (auto kernel = each.make())
        own.emplace_back(own.empty() ? "own" : std::string("own-") + each.name, std::move(kernel));
  if (own.empty()) {
    std::fprintf(stderr, "bf16-kernel: %s, which is the least that dryfly's own kernels need\n",
                 missing_for_avx2(processor).c_str());
    return 2;
  }
  const auto mkl = required({KernelKind::mkl, Precision::bf16, {arguments[1], 1}});
  const auto sgemm = required({KernelKind::sgemm, Precision::fp32, {arguments[2], 1}});
  for (const std::int64_t depth : {384, 768}) {
    for (const auto& [name, kernel] : own) measure<Bf16>(name.c_str(), *kernel, depth);
    measure_mkl(depth);
    measure<Bf16>("mkl-rounded", *mkl, depth);
    measure<float>("sgemm", *sgemm, depth);
  }
  return 0;
}
