// HPL-MxP's system of equations. Off the diagonal A has the numbers of HPL's generator; A's diagonal is the sum of the
// absolute values of the rest of its row, so that no pivots are needed (as in the reference code of the benchmark).
// b follows A in the sequence. A is never stored in FP64: every use of it makes it anew, each process its own part.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "../hpl/generator.hpp"
#include "../hpl/grid.hpp"
#include "../hpl/matrix.hpp"
#include "element.hpp"

namespace dryfly::mxp {

// A process's part of A in the stored precision, by columns.
class Store {
 public:
  Store(const hpl::Grid& grid, std::int64_t order, std::int64_t block, Precision precision, hpl::Gpu* gpu);

  bool allocated() const { return storage_.data() != nullptr; }
  void* at(std::int64_t row, std::int64_t column) const {
    return reinterpret_cast<char*>(storage_.data()) + (row + column * stride_) * element_bytes(precision_);
  }
  std::int64_t order() const { return rows_.count; }
  std::int64_t block() const { return rows_.block; }
  std::int64_t blocks() const { return (rows_.count + rows_.block - 1) / rows_.block; }
  const hpl::Cyclic& rows() const { return rows_; }
  const hpl::Cyclic& columns() const { return columns_; }
  std::int64_t stride() const { return stride_; }
  Precision precision() const { return precision_; }
  double bytes() const { return static_cast<double>(storage_.count()) * sizeof(double); }
  hpl::Gpu* gpu() const { return gpu_; }  // whose memory it is in; null: the host's

 private:
  hpl::Cyclic rows_, columns_;
  Precision precision_;
  std::int64_t stride_;
  hpl::Gpu* gpu_;
  hpl::Doubles storage_;
};

class System {
 public:
  System(const hpl::Grid& grid, std::uint64_t seed, const Store& store);

  // Writes A into the store and finds its diagonal; collective, as are all that follow.
  void generate();

  std::vector<double> product(const std::vector<double>& x) const;  // A x, on every process
  const std::vector<double>& right_side() const { return b_; }
  const std::vector<double>& diagonal() const { return diagonal_; }
  double norm() const { return norm_; }  // of A, in the maximum norm

  // ||b - A x|| / ((||A|| ||x|| + ||b||) eps N), all in the maximum norm: below the threshold, 16, means passed.
  double scaled(const std::vector<double>& difference, const std::vector<double>& x) const;

 private:
  // A piece of one of my columns; `values` may be changed.
  using Visit = std::function<void(std::int64_t row, std::int64_t column, std::int64_t count, double* values)>;
  void each_piece(const Visit& visit) const;
  void add_products(const double* x, double* sums) const;  // of my part of A

  const hpl::Grid& grid_;
  const Store& store_;
  std::uint64_t seed_;
  std::vector<double> b_, diagonal_;
  hpl::Doubles x_on_gpu_, sums_on_gpu_, x_on_host_, sums_on_host_;  // with the store in a GPU's memory; the last pinned
  double norm_ = 0;
};

// Sums over all processes. All get the same bits, so that all decide alike.
void sum_everywhere(std::vector<double>& values, MPI_Comm all);
double largest(const std::vector<double>& values);  // in magnitude; NaN if one is

}  // namespace dryfly::mxp
