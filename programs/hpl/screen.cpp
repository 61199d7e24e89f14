#include "screen.hpp"

#include <algorithm>
#include <initializer_list>
#include <numeric>

#include "agree.hpp"
#include "matrix.hpp"

namespace dryfly::hpl {
namespace {

constexpr std::int64_t kElements = 4'000'000;  // of each array of the triad, more than any cache holds
constexpr int kRounds = 5;
constexpr const char* kElsewhere = "a rank has no memory for what --screen or --spare measures";

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

// Collective, because the measuring that follows is.
void require_memory(std::initializer_list<const Doubles*> arrays, MPI_Comm where) {
  const bool all =
      std::all_of(arrays.begin(), arrays.end(), [](const Doubles* each) { return each->data() != nullptr; });
  agree(all ? "" : "--screen or --spare: the system gives no memory to measure with", kElsewhere, where);
}

std::vector<double> of_all(double mine, MPI_Comm where) {
  int ranks = 0;
  MPI_Comm_size(where, &ranks);
  std::vector<double> all(static_cast<std::size_t>(ranks));
  MPI_Allgather(&mine, 1, MPI_DOUBLE, all.data(), 1, MPI_DOUBLE, where);
  return all;
}

// Which ranks are left.
std::vector<bool> kept_without(const Screening& screening, int spare) {
  const double gemm = median(screening.gemm_gflops), memory = median(screening.memory_gbytes);
  std::vector<std::size_t> order(screening.gemm_gflops.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto speed = [&](std::size_t rank) {
    return std::min(screening.gemm_gflops[rank] / gemm, screening.memory_gbytes[rank] / memory);
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return speed(a) > speed(b); });
  std::vector<bool> kept(order.size(), true);
  for (int i = 0; i < spare; ++i) kept[order[order.size() - 1 - static_cast<std::size_t>(i)]] = false;
  return kept;
}

}  // namespace

Screening screen(const std::function<void()>& multiply, std::int64_t block, MPI_Comm where) {
  Screening result;
  const double operations = 2.0 * static_cast<double>(kScreenOrder * kScreenOrder * block);
  result.gemm_gflops = of_all(median_rate(operations, where, multiply), where);
  const Doubles a(kElements), b(kElements), c(kElements);
  require_memory({&a, &b, &c}, where);
  const double bytes = 24.0 * kElements;
  result.memory_gbytes = of_all(median_rate(bytes, where,
                                            [&] {
                                              for (std::int64_t i = 0; i < kElements; ++i)
                                                a.data()[i] = b.data()[i] + 2.0 * c.data()[i];
                                            }),
                                where);
  return result;
}

Screening screen(const Blas& blas, std::int64_t block, MPI_Comm where) {
  const Doubles a(kScreenOrder * block), b(kScreenOrder * block), c(kScreenOrder * kScreenOrder);
  require_memory({&a, &b, &c}, where);
  const Generator generator(Generator::kHplSeed);  // zeros would be multiplied at a higher clock
  generator.fill(0, a.count(), a.data());
  generator.fill(0, b.count(), b.data());
  return screen(
      [&] {
        blas.subtract_product(kScreenOrder, kScreenOrder, block, a.data(), kScreenOrder, b.data(), block, false,
                              c.data(), kScreenOrder);
      },
      block, where);
}

void print_screening(std::FILE* out, const char* when, const Screening& screening) {
  if (screening.gemm_gflops.empty()) return;
  const double gemm = median(screening.gemm_gflops), memory = median(screening.memory_gbytes);
  std::fprintf(out, "screening %s: product %.2f GF/s, memory %.2f GB/s a rank (medians)\n", when, gemm, memory);
  for (std::size_t rank = 0; rank < screening.gemm_gflops.size(); ++rank)
    if (screening.gemm_gflops[rank] < kSlow * gemm || screening.memory_gbytes[rank] < kSlow * memory)
      std::fprintf(out, "  slow: rank %zu, product %.2f GF/s, memory %.2f GB/s\n", rank, screening.gemm_gflops[rank],
                   screening.memory_gbytes[rank]);
  std::fflush(out);
}

MPI_Comm without_slowest(const Screening& screening, int spare) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::vector<bool> kept = kept_without(screening, spare);
  for (std::size_t other = 0; rank == 0 && other < kept.size(); ++other)
    if (!kept[other])
      std::printf("left out: rank %zu, product %.2f GF/s, memory %.2f GB/s\n", other, screening.gemm_gflops[other],
                  screening.memory_gbytes[other]);
  MPI_Comm where = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, kept[static_cast<std::size_t>(rank)] ? 0 : MPI_UNDEFINED, rank, &where);
  return where;
}

void multiply_once(const Blas& blas, std::int64_t block) {
  constexpr std::int64_t kRows = 1000;
  const Doubles a(kRows * block), b(kRows * block), c(kRows * kRows);
  if (a.data() != nullptr && b.data() != nullptr && c.data() != nullptr)
    blas.subtract_product(kRows, kRows, block, a.data(), kRows, b.data(), block, false, c.data(), kRows);
}

void warm_up(const std::function<void()>& multiply, const Grid& grid, std::int64_t block) {
  multiply();
  std::vector<double> leaves(static_cast<std::size_t>(block * block)), comes(leaves.size());
  const auto neighbours = [&](MPI_Comm where, int rank, int size) {
    MPI_Sendrecv(leaves.data(), static_cast<int>(leaves.size()), MPI_DOUBLE, (rank + 1) % size, 0, comes.data(),
                 static_cast<int>(comes.size()), MPI_DOUBLE, (rank + size - 1) % size, 0, where, MPI_STATUS_IGNORE);
  };
  neighbours(grid.along_row(), grid.column(), grid.columns());
  neighbours(grid.along_column(), grid.row(), grid.rows());
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

double mean(const std::vector<double>& values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace dryfly::hpl
