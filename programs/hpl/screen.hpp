// What each rank can do, measured on all at once: the product that the update consists of, and the memory. A rank that
// is slower than the others holds up every step, so it is named.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <vector>

#include "blas.hpp"
#include "grid.hpp"

namespace dryfly::hpl {

constexpr double kSlow = 0.9;                // of the median
constexpr std::int64_t kScreenOrder = 3000;  // rows and columns of the product's C

struct Screening {
  std::vector<double> gemm_gflops;    // by rank; of the product
  std::vector<double> memory_gbytes;  // by rank; of a triad a := b + 2 c, with 24 bytes an element
};

// Collective. `multiply` does the product C := C - A B once, with K = `block`.
Screening screen(const std::function<void()>& multiply, std::int64_t block, MPI_Comm where);
Screening screen(const Blas& blas, std::int64_t block, MPI_Comm where);

// The medians, and the ranks that are slow; nothing of an empty screening.
void print_screening(std::FILE* out, const char* when, const Screening& screening);

// Collective over all ranks: the communicator of those that are left when the `spare` slowest are taken away, by the
// lesser of the two rates over their medians; null on the others. The first rank prints whom it leaves out.
MPI_Comm without_slowest(const Screening& screening, int spare);

// Multiplies once, and lets each process of the grid exchange a message with its neighbours.
void warm_up(const std::function<void()>& multiply, const Grid& grid, std::int64_t block);
void multiply_once(const Blas& blas, std::int64_t block);

double median(std::vector<double> values);
double mean(const std::vector<double>& values);

}  // namespace dryfly::hpl
