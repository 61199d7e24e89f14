// The factorisation: panel after panel, with look-ahead.
//
// In step k the panel k + depth is brought up to date, factored and sent on its way before the update with panel k,
// during which its broadcast goes on. With several process rows the update can be split, so that the rows of one part
// are exchanged while another part is multiplied.
//
// With the matrix in a GPU's memory (gpu.hpp) the kernels are launched and go on by themselves, and panels are factored
// by the processor: the columns of panel k + depth are copied to the host as soon as they are up to date, and factored
// after the update with panel k has been launched, beside it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "blas.hpp"
#include "checkpoint.hpp"
#include "panel.hpp"
#include "phases.hpp"
#include "rows.hpp"

namespace dryfly::hpl {

struct FactorOptions {
  PanelOptions panel;
  SwapOptions swap;
  Broadcast broadcast = Broadcast::ring_modified;
  int depth = 1;
  int split = 2;  // parts of an update
  bool transposed_top = false;
  Transfers transfers = Transfers::device;  // of a matrix in a GPU's memory
};

// Of one exchange of rows, at most.
std::int64_t columns_of_part(const Cyclic& columns, int split);

class Factorisation final : public Checkpointed {
 public:
  Factorisation(const Grid& grid, const Blas& blas, const FactorOptions& options, Matrix& matrix);

  // Called after every step, with the number of the next, the columns that are finished and this process's times.
  using AfterStep = std::function<void(std::int64_t next_step, std::int64_t columns_done, const StepTimes&)>;
  // From step `first` on; if that is not 0, the state before it has been transferred.
  void run(std::int64_t first, const AfterStep& after_step);

  void settle() override { traffic_.wait_for_all(); }
  bool transfer_state(std::int64_t next_step, const Transfer& transfer) override;

  std::int64_t elements() const;  // memory besides the matrix, in doubles
  bool allocated() const;         // of a GPU's memory

 private:
  void bring_up_to_date(std::int64_t index, std::int64_t oldest);
  void factor_and_broadcast(std::int64_t index);
  void factor_beside_gpu(Panel& panel);
  void hand_to_gpu(Panel& panel);
  void wait_for_products();
  void update(Panel& panel, std::int64_t first, std::int64_t count);
  void update_part(Panel& panel, std::int64_t first, std::int64_t count, const double* u, std::int64_t u_stride,
                   bool transposed_u);
  void update_alone(Panel& panel, std::int64_t first, std::int64_t count);
  void receive(Panel& panel);
  void update_part_on_gpu(Panel& panel, std::int64_t first, std::int64_t count, double* u, std::int64_t u_stride,
                          bool transposed_u);
  Panel& panel(std::int64_t index) { return panels_[static_cast<std::size_t>(index) % panels_.size()]; }
  std::int64_t blocks() const;

  const Grid& grid_;
  const Blas& blas_;
  const Blas panel_blas_;
  FactorOptions options_;
  Matrix& matrix_;
  Gpu* gpu_;  // null: the matrix is in the host's memory
  PanelFactor factor_;
  Traffic traffic_;
  std::vector<Panel> panels_;
  std::vector<RowExchange> exchanges_;
  RowListsOnGpu lists_;
  Doubles panel_rows_;                                   // of the next panel, on the host
  Gpu::Mark up_to_date_ = nullptr, products_ = nullptr;  // its columns; the last product that was launched
  int exchange_tag_ = 0;
  StepTimes times_;
};

}  // namespace dryfly::hpl
