// Storage: aligned memory in huge pages where the system has them, or a GPU's, and a process's part of [A | b].
#pragma once

#include <cstddef>
#include <cstdint>

#include "generator.hpp"
#include "gpu.hpp"
#include "grid.hpp"

namespace dryfly::hpl {

// Memory of doubles that is given back at the end; empty when the system has none (data() is null).
class Doubles {
 public:
  Doubles() = default;
  explicit Doubles(std::int64_t count);
  Doubles(std::int64_t count, Gpu* gpu, Gpu::Place place);  // without a GPU: as above
  ~Doubles();
  Doubles(Doubles&& other) noexcept;
  Doubles& operator=(Doubles&& other) noexcept;

  double* data() const { return data_; }
  std::int64_t count() const { return count_; }

 private:
  double* data_ = nullptr;
  std::int64_t count_ = 0;
  std::size_t bytes_ = 0;
  Gpu* gpu_ = nullptr;
  Gpu::Place place_ = Gpu::Place::device;
};

// The distance between two columns: a multiple of `alignment` doubles that is no multiple of a page, so that the
// elements of one row do not all fall into the same set of the cache.
std::int64_t column_stride(std::int64_t rows, std::int64_t alignment);

// [A | b], N x (N + 1), by columns.
class Matrix {
 public:
  Matrix(const Grid& grid, std::int64_t order, std::int64_t block, std::int64_t alignment, Gpu* gpu);

  bool allocated() const { return storage_.data() != nullptr; }
  void generate(const Generator& generator);

  // Columns [first, first + count) of the local part, regenerated elsewhere.
  void generate_columns(const Generator& generator, std::int64_t first, std::int64_t count, double* target,
                        std::int64_t target_stride) const;

  std::int64_t order() const { return rows_.count; }
  std::int64_t block() const { return rows_.block; }
  const Cyclic& rows() const { return rows_; }
  const Cyclic& columns() const { return columns_; }
  std::int64_t stride() const { return stride_; }
  double* at(std::int64_t row, std::int64_t column) const { return storage_.data() + row + column * stride_; }
  std::int64_t elements() const { return storage_.count(); }
  Gpu* gpu() const { return gpu_; }  // whose memory it is in; null: the host's

 private:
  Cyclic rows_, columns_;
  std::int64_t stride_;
  Gpu* gpu_;
  Doubles storage_;
};

}  // namespace dryfly::hpl
