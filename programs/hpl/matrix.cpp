#include "matrix.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

namespace dryfly::hpl {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::int64_t kPageDoubles = 512;

}  // namespace

Doubles::Doubles(std::int64_t count) : count_(count) {
  bytes_ =
      (static_cast<std::size_t>(std::max<std::int64_t>(count, 1)) * sizeof(double) + kHugePage - 1) & ~(kHugePage - 1);
  void* memory = mmap(nullptr, bytes_ + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  // Only a region that begins at a huge page can be made of huge pages; what lies around it is given back.
  char* begin = static_cast<char*>(memory);
  char* aligned = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(begin) + kHugePage - 1) & ~(kHugePage - 1));
  const auto before = static_cast<std::size_t>(aligned - begin);
  if (before != 0) munmap(begin, before);
  munmap(aligned + bytes_, kHugePage - before);
  madvise(aligned, bytes_, MADV_HUGEPAGE);
  data_ = reinterpret_cast<double*>(aligned);
}

Doubles::Doubles(std::int64_t count, Gpu* gpu, Gpu::Place place) {
  if (gpu == nullptr) {
    *this = Doubles(count);
    return;
  }
  count_ = count;
  bytes_ = static_cast<std::size_t>(std::max<std::int64_t>(count, 1)) * sizeof(double);
  gpu_ = gpu;
  place_ = place;
  data_ = static_cast<double*>(gpu->take(bytes_, place));
}

Doubles::~Doubles() {
  if (data_ == nullptr) return;
  if (gpu_ != nullptr)
    gpu_->give_back(data_, place_);
  else
    munmap(data_, bytes_);
}

Doubles::Doubles(Doubles&& other) noexcept { *this = std::move(other); }

Doubles& Doubles::operator=(Doubles&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(count_, other.count_);
  std::swap(bytes_, other.bytes_);
  std::swap(gpu_, other.gpu_);
  std::swap(place_, other.place_);
  return *this;
}

std::int64_t column_stride(std::int64_t rows, std::int64_t alignment) {
  std::int64_t stride = (std::max<std::int64_t>(rows, 1) + alignment - 1) / alignment * alignment;
  while (stride % kPageDoubles == 0) stride += alignment;
  return stride;
}

Matrix::Matrix(const Grid& grid, std::int64_t order, std::int64_t block, std::int64_t alignment, Gpu* gpu)
    : rows_{order, block, grid.rows(), grid.row()},
      columns_{order + 1, block, grid.columns(), grid.column()},
      stride_(column_stride(rows_.size(), alignment)),
      gpu_(gpu),
      storage_(stride_ * columns_.size(), gpu, Gpu::Place::device) {}

void Matrix::generate(const Generator& generator) {
  const auto make = [&] { generate_columns(generator, 0, columns_.size(), storage_.data(), stride_); };
  if (gpu_ == nullptr) return make();
  gpu_->launch(KernelWork::memory(elements() * static_cast<std::int64_t>(sizeof(double))), make);
  gpu_->wait_for_kernels();
}

void Matrix::generate_columns(const Generator& generator, std::int64_t first, std::int64_t count, double* target,
                              std::int64_t target_stride) const {
  const std::int64_t local_rows = rows_.size();
  for (std::int64_t column = 0; column < count; ++column) {
    const std::int64_t offset = columns_.global(first + column) * rows_.count;
    for (std::int64_t row = 0; row < local_rows; row += rows_.block) {
      const std::int64_t length = std::min(rows_.block, local_rows - row);
      generator.fill(static_cast<std::uint64_t>(offset + rows_.global(row)), length,
                     target + row + column * target_stride);
    }
  }
}

}  // namespace dryfly::hpl
