#include "screen.hpp"

#include <algorithm>
#include <numeric>

#include "matrix.hpp"

namespace dryfly::hpl {
namespace {

constexpr std::int64_t kOrder = 3000;          // rows and columns of C
constexpr std::int64_t kElements = 4'000'000;  // of each array of the triad, more than any cache holds
constexpr int kRounds = 5;

double median_rate(double work, MPI_Comm where, const auto& measured) {
  std::vector<double> rates;
  measured();  // pages and threads come into being
  for (int round = 0; round < kRounds; ++round) {
    MPI_Barrier(where);
    const double begin = MPI_Wtime();
    measured();
    rates.push_back(work / std::max(MPI_Wtime() - begin, 1e-9) / 1e9);
  }
  return median(rates);
}

std::vector<double> of_all(double mine, MPI_Comm where) {
  int ranks = 0;
  MPI_Comm_size(where, &ranks);
  std::vector<double> all(static_cast<std::size_t>(ranks));
  MPI_Allgather(&mine, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, where);
  return all;
}

}  // namespace

Screening screen(const Blas& blas, std::int64_t block, MPI_Comm where) {
  Screening result;
  {
    const Doubles a(kOrder * block), b(kOrder * block), c(kOrder * kOrder);
    if (a.data() == nullptr || b.data() == nullptr || c.data() == nullptr) return result;
    const Generator generator(Generator::kHplSeed);  // zeros would be multiplied at a higher clock
    generator.fill(0, a.count(), a.data());
    generator.fill(0, b.count(), b.data());
    const double operations = 2.0 * static_cast<double>(kOrder * kOrder * block);
    result.gemm_gflops = of_all(median_rate(operations, where,
                                            [&] {
                                              blas.subtract_product(kOrder, kOrder, block, a.data(), kOrder, b.data(),
                                                                    block, false, c.data(), kOrder);
                                            }),
                                where);
  }
  const Doubles a(kElements), b(kElements), c(kElements);
  if (a.data() == nullptr || b.data() == nullptr || c.data() == nullptr) return result;
  const double bytes = 24.0 * kElements;
  result.memory_gbytes = of_all(median_rate(bytes, where,
                                            [&] {
                                              for (std::int64_t i = 0; i < kElements; ++i)
                                                a.data()[i] = b.data()[i] + 2.0 * c.data()[i];
                                            }),
                                where);
  return result;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

double mean(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace dryfly::hpl
