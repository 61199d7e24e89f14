#include "blas.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include "work.hpp"

// Where `dryfly hpl` found libraries when it built this program: paths with ':' between them, best first.
#ifndef DRYFLY_BLAS_FOUND
#define DRYFLY_BLAS_FOUND ""
#endif

namespace dryfly::hpl {
namespace {

constexpr const char* kMklNames = "libmkl_rt.so.3:libmkl_rt.so.2:libmkl_rt.so";
constexpr const char* kOpenBlasNames = "libopenblas.so.0:libopenblas.so";
constexpr const char* kAnyNames = "libblas.so.3";
constexpr int kMklSequential = 1, kMklIntelThreads = 0;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, ':');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

bool is_mkl(const std::string& name) { return name.find("mkl") != std::string::npos; }
bool is_openblas(const std::string& name) { return name.find("openblas") != std::string::npos; }

std::string processor(const char* field) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(field, 0) == 0) return line.substr(line.find(':') + 1) + " ";
  return "";
}

// The order in which they are tried. oneMKL exists for x86 only, and is slower than OpenBLAS on AMD's processors: a
// seventh in HPL and a third in SGEMM on one with AVX-512 (README.md).
enum class First { mkl_on_intel, openblas_on_amd, openblas };

First first_tried() {
#if defined(__x86_64__)
  return processor("vendor_id").find("AuthenticAMD") != std::string::npos ? First::openblas_on_amd
                                                                          : First::mkl_on_intel;
#else
  return First::openblas;
#endif
}

bool by_default(const std::string& wanted) {
  const char* fixed = std::getenv("DRYFLY_BLAS");
  return wanted.empty() && (fixed == nullptr || *fixed == '\0');
}

std::vector<std::string> candidates(const std::string& wanted) {
  if (wanted.find('/') != std::string::npos || wanted.find(".so") != std::string::npos) return {wanted};
  if (wanted.empty() && !by_default(wanted)) return {std::getenv("DRYFLY_BLAS")};
  std::vector<std::string> mkl, openblas, any = split(kAnyNames);
  for (const std::string& found : split(DRYFLY_BLAS_FOUND)) (is_mkl(found) ? mkl : openblas).push_back(found);
  for (const std::string& name : split(kMklNames)) mkl.push_back(name);
  for (const std::string& name : split(kOpenBlasNames)) openblas.push_back(name);
  if (wanted == "mkl") return mkl;
  if (wanted == "openblas") return openblas;
  const bool mkl_first = first_tried() == First::mkl_on_intel;
  std::vector<std::string> all = mkl_first ? mkl : openblas;
  const std::vector<std::string>& second = mkl_first ? openblas : mkl;
  all.insert(all.end(), second.begin(), second.end());
  all.insert(all.end(), any.begin(), any.end());
  return all;
}

// Of a library that nobody named.
std::string why_taken(const std::string& name) {
  switch (first_tried()) {
    case First::mkl_on_intel:
      return is_mkl(name) ? "" : " (oneMKL is not installed)";
    case First::openblas_on_amd:
      return is_openblas(name) ? " (before oneMKL on AMD's processors)"
                               : " (OpenBLAS, which comes first on AMD's processors, is not installed)";
    case First::openblas:
      break;
  }
  return "";
}

template <class Function>
Function find(void* library, const std::string& name) {
  return reinterpret_cast<Function>(dlsym(library, name.c_str()));
}

std::string prefix_of(void* library) {
  for (const char* prefix : {"", "scipy_"})
    if (dlsym(library, (std::string(prefix) + "dgemm_").c_str()) != nullptr) return prefix;
  return "";
}

std::string configure_mkl(void* library, int threads) {
  if (auto layer = find<int (*)(int)>(library, "MKL_Set_Threading_Layer"))
    layer(threads == 1 ? kMklSequential : kMklIntelThreads);
  if (auto set = find<void (*)(int)>(library, "MKL_Set_Num_Threads")) set(threads);
  struct Version {
    int major, minor, update;
    const char *product_status, *build, *processor, *platform;
  } version{};
  if (auto get = find<void (*)(Version*)>(library, "MKL_Get_Version")) get(&version);
  std::ostringstream text;
  text << "oneMKL " << version.major << "." << version.update << ", for "
       << (version.processor != nullptr ? version.processor : "an unknown processor");
  return text.str();
}

// OpenBLAS without knowledge of a processor falls back to the kernels of a Haswell, half as fast with AVX-512 at hand.
bool takes_it_for_less(const std::string& core) {
  return (core == "Haswell" || core == "Zen") && processor("flags").find(" avx512f ") != std::string::npos;
}

std::string open_blas_core(void* library, const std::string& prefix) {
  auto core = find<char* (*)()>(library, prefix + "openblas_get_corename");
  return core != nullptr ? core() : "";
}

void* open_openblas(const std::string& name, std::string* note) {
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) return nullptr;
  const std::string detected = open_blas_core(library, prefix_of(library));
  if (!takes_it_for_less(detected) || std::getenv("OPENBLAS_CORETYPE") != nullptr) return library;
  dlclose(library);
  setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);
  *note = " (it had detected " + detected + ", though there is AVX-512)";
  return dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL);
}

}  // namespace

Blas Blas::of(WorkOf whose) const {
  Blas blas = *this;
  blas.whose_ = whose;
  return blas;
}

void Blas::take_memory() const {
  constexpr int kSide = 128;
  constexpr std::size_t kElements = std::size_t{kSide} * kSide;
  std::vector<double> a(kElements, 0.0), b(kElements, 0.0), c(kElements, 0.0);
  of(WorkOf::kernel).subtract_product(kSide, kSide, kSide, a.data(), kSide, b.data(), kSide, false, c.data(), kSide);
}

void* Blas::symbol(const std::string& name) const { return dlsym(library_, (prefix_ + name).c_str()); }

bool Blas::bind(void* library, const std::string& prefix) {
  library_ = library;
  prefix_ = prefix;
  gemm_ = find<Gemm>(library, prefix + "dgemm_");
  trsm_ = find<Trsm>(library, prefix + "dtrsm_");
  trsv_ = find<Trsv>(library, prefix + "dtrsv_");
  return gemm_ != nullptr && trsm_ != nullptr && trsv_ != nullptr;
}

Blas Blas::load(const BlasChoice& choice, std::string* error) {
  Blas blas;
  std::string reason = "none is installed";
  setenv("OPENBLAS_NUM_THREADS", std::to_string(choice.threads).c_str(), 1);
  const std::vector<std::string> names = candidates(choice.library);
  for (const std::string& name : names) {
    std::string note;
    void* library = is_openblas(name) ? open_openblas(name, &note) : dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      if (names.size() == 1) reason = dlerror();
      continue;
    }
    const std::string prefix = prefix_of(library);
    if (!blas.bind(library, prefix)) {
      reason = name + " has no dgemm_, dtrsm_ and dtrsv_";
      continue;
    }
    if (dlsym(library, "MKL_Get_Version") != nullptr) {
      blas.description_ = configure_mkl(library, choice.threads);
    } else {
      if (auto set = find<void (*)(int)>(library, prefix + "openblas_set_num_threads")) set(choice.threads);
      const std::string core = open_blas_core(library, prefix);
      blas.description_ = core.empty() ? "BLAS" : "OpenBLAS, kernels for " + core + note;
    }
    if (by_default(choice.library)) blas.description_ += why_taken(name);
    blas.description_ += ", " + std::to_string(choice.threads) + (choice.threads == 1 ? " thread" : " threads") +
                         " a rank (" + name + ")";
    return blas;
  }
  *error = "no BLAS" + (choice.library.empty() ? "" : " \"" + choice.library + "\"") + " can be loaded (" + reason +
           "); \"pip install mkl\" or \"pip install scipy-openblas32\" gives one, --blas PATH names one";
  return blas;
}

void Blas::subtract_product(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, std::int64_t a_stride,
                            const double* b, std::int64_t b_stride, bool transposed_b, double* c,
                            std::int64_t c_stride) const {
  if (m <= 0 || n <= 0 || k <= 0 || !product(m, n, k, DRYFLY_FP64, whose_)) return;
  const int rows = static_cast<int>(m), columns = static_cast<int>(n), depth = static_cast<int>(k);
  const int sa = static_cast<int>(a_stride), sb = static_cast<int>(b_stride), sc = static_cast<int>(c_stride);
  const double minus_one = -1.0, one = 1.0;
  gemm_("N", transposed_b ? "T" : "N", &rows, &columns, &depth, &minus_one, a, &sa, b, &sb, &one, c, &sc);
}

void Blas::solve_unit_lower(std::int64_t m, std::int64_t n, const double* l, std::int64_t l_stride,
                            bool stored_transposed, double* b, std::int64_t b_stride) const {
  if (m <= 0 || n <= 0 || !triangular_solve(m, n, DRYFLY_FP64, whose_)) return;
  const int rows = static_cast<int>(m), columns = static_cast<int>(n);
  const int sl = static_cast<int>(l_stride), sb = static_cast<int>(b_stride);
  const double one = 1.0;
  trsm_("L", stored_transposed ? "U" : "L", stored_transposed ? "T" : "N", "U", &rows, &columns, &one, l, &sl, b, &sb);
}

void Blas::solve_unit_lower_right(std::int64_t m, std::int64_t n, const double* l, std::int64_t l_stride,
                                  bool stored_transposed, double* b, std::int64_t b_stride) const {
  if (m <= 0 || n <= 0 || !triangular_solve(m, n, DRYFLY_FP64, whose_)) return;
  const int rows = static_cast<int>(n), columns = static_cast<int>(m);
  const int sl = static_cast<int>(l_stride), sb = static_cast<int>(b_stride);
  const double one = 1.0;
  trsm_("R", stored_transposed ? "U" : "L", stored_transposed ? "N" : "T", "U", &rows, &columns, &one, l, &sl, b, &sb);
}

void Blas::solve_upper(std::int64_t n, const double* u, std::int64_t u_stride, double* x) const {
  if (n <= 0 || !triangular_solve(n, 1, DRYFLY_FP64, whose_)) return;
  const int order = static_cast<int>(n), su = static_cast<int>(u_stride), one = 1;
  trsv_("U", "N", "N", &order, u, &su, x, &one);
}

}  // namespace dryfly::hpl
