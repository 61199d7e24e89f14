// L U without pivoting over the grid, right-looking, a block column a step. The next step's L is made
// ahead, as soon as its columns are up to date, and travels while the rest of the update is computed. The diagonal
// block is factored and inverted in FP32 by its owner; L and U of the step are products with those inverses, computed
// by the kernel in FP32 and rounded once to the stored precision. A's diagonal, which carries its weight, is kept and
// updated in FP64 beside it: rounded to BF16 it alone costs the refinement one step more at N = 2,000
// and two at 8,000.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "../hpl/checkpoint.hpp"
#include "../hpl/phases.hpp"
#include "kernel.hpp"
#include "system.hpp"

namespace dryfly::mxp {

// What travels: where it is used, and where that is a GPU, pinned memory of the host's.
struct Travelling {
  hpl::Doubles used, on_host;
  bool staged = false;  // MPI is given the latter

  Travelling() = default;
  Travelling(std::int64_t bytes, hpl::Gpu* gpu, hpl::Transfers transfers, bool filled_by_host);
  void* moved() const { return staged ? on_host.data() : used.data(); }
  std::int64_t count() const { return used.count() + on_host.count(); }
};

// With the matrix in a GPU's memory all products, and what packs for them, are kernels in one stream; the diagonal
// blocks are factored by the processor. What MPI moves is waited for first.
class Factorisation final : public hpl::Checkpointed {
 public:
  using AfterStep = std::function<void(std::int64_t next_step, std::int64_t columns_done, const hpl::StepTimes& times)>;

  Factorisation(const hpl::Grid& grid, Kernel& kernel, Store& store, hpl::Transfers transfers);

  // Collective. `diagonal` is A's. From step `first` on; if that is not 0, the state before it has been transferred.
  void run(const std::vector<double>& diagonal, std::int64_t first, const AfterStep& after_step);

  void settle() override { wait_for_left(); }
  bool transfer_state(std::int64_t next_step, const Transfer& transfer) override;

  const Store& store() const { return store_; }
  const hpl::Grid& grid() const { return grid_; }

  // What factor_and_invert left of a diagonal block; at its owner only.
  const float* inverses(std::int64_t block) const { return inverses_.at(block).data(); }

  double bytes() const;  // of this process, beside the store

 private:
  int announced_precision() const;
  // The kernel's, announced to dryfly.
  void pack_left(std::int64_t m, std::int64_t k, const void* a, void* packed, std::int64_t stride);
  void pack_right(std::int64_t k, std::int64_t n, const void* b, void* packed, std::int64_t stride);
  void subtract(std::int64_t m, std::int64_t n, std::int64_t k, const void* left, const void* right, void* c,
                Zeros zeros);

  void take_diagonal_block(std::int64_t step);
  void factor_diagonal(std::int64_t step);
  void upper_panel(std::int64_t step);
  void left_panel(std::int64_t step);
  void prepare(std::int64_t step);  // its diagonal block and its L, whose broadcast begins
  void update(std::int64_t step);
  void update_columns(std::int64_t step, std::int64_t first, std::int64_t count);
  void wait_for_left();
  void update_diagonal(std::int64_t step);
  void subtract_from_diagonal(std::int64_t step, double* diagonal) const;
  void broadcast(const Travelling& what, std::int64_t offset, std::int64_t bytes, int root, MPI_Comm along);
  // Before MPI has it and after.
  void give(const Travelling& what, std::int64_t offset, std::int64_t bytes, bool from_here);
  void take(const Travelling& what, std::int64_t offset, std::int64_t bytes);
  void wait_for_kernels();

  std::int64_t width(std::int64_t step) const {
    return std::min(store_.block(), store_.order() - step * store_.block());
  }
  std::int64_t end(std::int64_t step) const { return step * store_.block() + width(step); }
  std::int64_t rows_below(std::int64_t step) const { return store_.rows().size() - store_.rows().below(end(step)); }
  std::int64_t columns_after(std::int64_t step) const {
    return store_.columns().size() - store_.columns().below(end(step));
  }
  const Travelling& left_of(std::int64_t step) const { return left_[static_cast<std::size_t>(step % 2)]; }
  void* left(std::int64_t step) const { return left_of(step).used.data(); }
  int owner_row(std::int64_t step) const { return static_cast<int>(step % grid_.rows()); }
  int owner_column(std::int64_t step) const { return static_cast<int>(step % grid_.columns()); }

  const hpl::Grid& grid_;
  Kernel& kernel_;
  Store& store_;
  hpl::Gpu* gpu_;  // null: the store is in the host's memory
  std::vector<double> diagonal_;
  hpl::Doubles diagonal_on_gpu_, diagonal_on_host_, block_on_host_;  // the last two of one block, pinned
  std::map<std::int64_t, std::vector<float>> inverses_;
  Travelling left_[2], right_;  // L of this step and of the next, U of this one, packed
  Travelling small_;            // the inverses of a diagonal block's factors
  hpl::Doubles small_packed_;
  MPI_Request left_under_way_ = MPI_REQUEST_NULL;
  hpl::StepTimes times_;
};

}  // namespace dryfly::mxp
