#include "rows.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "work.hpp"

namespace dryfly::hpl {
namespace {

constexpr std::int64_t kColumnsAtOnce = 8;  // packed together, so that a cache line of the target is written once

// Row `row` of the columns becomes contiguous.
void gather_rows(const double* columns, std::int64_t stride, std::span<const std::int64_t> rows, std::int64_t count,
                 double* target) {
  for (std::int64_t c = 0; c < count; c += kColumnsAtOnce) {
    const std::int64_t end = std::min(count, c + kColumnsAtOnce);
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (std::int64_t k = end; k < std::min(count, end + kColumnsAtOnce); ++k)
        __builtin_prefetch(columns + rows[r] + k * stride, 1, 2);
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (std::int64_t k = c; k < end; ++k)
        target[static_cast<std::int64_t>(r) * count + k] = columns[rows[r] + k * stride];
  }
}

void scatter_rows(const double* source, std::span<const std::int64_t> rows, std::int64_t count, double* columns,
                  std::int64_t stride) {
  for (std::int64_t c = 0; c < count; c += kColumnsAtOnce) {
    const std::int64_t end = std::min(count, c + kColumnsAtOnce);
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (std::int64_t k = c; k < end; ++k)
        columns[rows[r] + k * stride] = source[static_cast<std::int64_t>(r) * count + k];
  }
}

// Rows are read in one place and written in another.
std::int64_t copied_bytes(std::size_t rows, std::int64_t columns) {
  return 2 * static_cast<std::int64_t>(rows * sizeof(double)) * columns;
}

bool copies(std::size_t rows, std::int64_t columns) { return memory_traffic(copied_bytes(rows, columns)); }

void reserve(Doubles& memory, std::int64_t count) {
  if (memory.count() < count) memory = Doubles(count);
}

}  // namespace

RowMoves::RowMoves(const Grid& grid, const Matrix& matrix, const Panel& panel) {
  const int size = grid.rows();
  const auto width = static_cast<std::size_t>(panel.width);
  position = (grid.row() - panel.owner_row + size) % size;
  std::vector<std::int64_t> top(width);
  std::map<std::int64_t, std::int64_t> below;  // row: which row of the top block ends there
  for (std::size_t i = 0; i < width; ++i) top[i] = panel.column + static_cast<std::int64_t>(i);
  for (std::size_t i = 0; i < width; ++i) {
    const auto row = static_cast<std::int64_t>(panel.pivots()[i]);
    if (row < panel.column + panel.width)
      std::swap(top[i], top[static_cast<std::size_t>(row - panel.column)]);
    else
      std::swap(top[i], below.try_emplace(row, row).first->second);
  }
  for (int p = 0; p < size; ++p) {
    const int process = (panel.owner_row + p) % size;
    offsets.push_back(static_cast<std::int64_t>(gathered.size()));
    displaced_offsets.push_back(static_cast<std::int64_t>(displaced.size()));
    for (std::size_t i = 0; i < width; ++i) {
      if (matrix.rows().owner(top[i]) != process) continue;
      gathered.push_back(static_cast<std::int64_t>(i));
      if (p == position) mine.push_back(matrix.rows().local(top[i]));
    }
    for (const auto& [row, source] : below) {
      if (matrix.rows().owner(row) != process) continue;
      displaced.push_back(source - panel.column);
      if (p == position) arriving.push_back(matrix.rows().local(row));
    }
  }
  offsets.push_back(static_cast<std::int64_t>(gathered.size()));
  displaced_offsets.push_back(static_cast<std::int64_t>(displaced.size()));
}

RowListsOnGpu::RowListsOnGpu(Gpu* gpu, std::int64_t widest)
    : gpu_(gpu), on_host_(4 * widest, gpu, Gpu::Place::pinned), on_gpu_(4 * widest, gpu, Gpu::Place::device) {}

RowLists RowListsOnGpu::put(const RowMoves& moves) {
  static_assert(sizeof(std::int64_t) == sizeof(double));
  auto* on_host = reinterpret_cast<std::int64_t*>(on_host_.data());
  auto* on_gpu = reinterpret_cast<std::int64_t*>(on_gpu_.data());
  std::size_t used = 0;
  const auto one = [&](const std::vector<std::int64_t>& list) {
    std::copy(list.begin(), list.end(), on_host + used);
    const std::span<const std::int64_t> there(on_gpu + used, list.size());
    used += list.size();
    return there;
  };
  const RowLists lists{one(moves.gathered), one(moves.mine), one(moves.displaced), one(moves.arriving)};
  gpu_->copy(on_gpu, on_host, used * sizeof(std::int64_t), Gpu::Order::among_kernels);
  return lists;
}

RowExchange::RowExchange(const Grid& grid, const SwapOptions& options, StepTimes& times, Gpu* gpu, Transfers transfers,
                         std::int64_t widest, std::int64_t columns)
    : RowExchange(grid, options, times) {
  const std::int64_t count = widest * columns;
  gpu_ = gpu;
  packed_ = gpu->new_mark();
  for (Doubles* each : {&gathered_, &displaced_, &u_}) *each = Doubles(count, gpu, Gpu::Place::device);
  if (transfers == Transfers::device) return;
  for (Doubles* each : {&staged_gathered_, &staged_displaced_}) *each = Doubles(count, gpu, Gpu::Place::pinned);
}

void RowExchange::start(const Panel& panel, const RowMoves& moves, const RowLists& lists, Matrix& matrix,
                        std::int64_t first, std::int64_t count, int tag, Traffic& traffic) {
  first_ = first;
  count_ = count;
  width_ = panel.width;
  owner_row_ = panel.owner_row;
  u_stride_ = options_.transposed_u ? std::max<std::int64_t>(count, 1) : width_;
  schedule_.clear();
  if (count == 0) return;
  if (gpu_ == nullptr)
    for (Doubles* each : {&gathered_, &displaced_, &u_}) reserve(*each, width_ * count);
  moved_gathered_ = is_staged() ? staged_gathered_.data() : gathered_.data();
  moved_displaced_ = is_staged() ? staged_displaced_.data() : displaced_.data();
  {
    const Timed timed(times_, Phase::swap);
    pack(panel, moves, lists, matrix);
  }
  if (is_staged()) {
    const Timed timed(times_, Phase::to_host);
    const auto me = static_cast<std::size_t>(moves.position);
    stage(moved_gathered_, gathered_.data(), moves.offsets[me], moves.offsets[me + 1]);
    if (me == 0) stage(moved_displaced_, displaced_.data(), 0, moves.displaced_offsets.back());
    gpu_->wait_for_copies();
  }
  const Timed timed(times_, Phase::swap);
  const bool binary =
      options_.kind == SwapKind::binary || (options_.kind == SwapKind::mix && count <= options_.threshold);
  spread(moves, tag, binary);
  if (!binary) roll(moves, tag);
  traffic.start(schedule_);
}

void RowExchange::stage(double* to, const double* from, std::int64_t first_row, std::int64_t end_row) {
  gpu_->copy(to + first_row * count_, from + first_row * count_,
             static_cast<std::size_t>((end_row - first_row) * count_) * sizeof(double), Gpu::Order::beside);
}

void RowExchange::pack(const Panel& panel, const RowMoves& moves, const RowLists& lists, Matrix& matrix) {
  const bool is_owner = moves.position == 0;
  const std::size_t rows = moves.mine.size() + (is_owner ? moves.displaced.size() : 0);
  const double* columns = matrix.at(0, first_);
  const double* top = is_owner ? matrix.at(panel.first_row - panel.width, first_) : nullptr;
  double* mine = gathered_.data() + moves.offsets[static_cast<std::size_t>(moves.position)] * count_;
  const auto gather = [=, stride = matrix.stride(), count = count_, displaced = displaced_.data()] {
    gather_rows(columns, stride, lists.mine, count, mine);
    if (is_owner) gather_rows(top, stride, lists.displaced, count, displaced);
  };
  if (gpu_ == nullptr) {
    if (copies(rows, count_)) gather();
    return;
  }
  if (rows > 0) gpu_->launch(KernelWork::memory(copied_bytes(rows, count_)), gather);
  gpu_->set(packed_);
  gpu_->wait(packed_);
}

// Halves of the displaced rows go down a tree. With it, for the binary exchange, what is gathered doubles each round.
void RowExchange::spread(const RowMoves& moves, int tag, bool with_gather) {
  const int size = grid_.rows(), me = moves.position;
  const MPI_Comm where = grid_.along_column();
  const auto process = [&](int position) { return (owner_row_ + position) % size; };
  const auto pass = [&](double* rows, const std::vector<std::int64_t>& offsets, int begin, int end, int peer,
                        bool is_send, int which) {
    const std::int64_t from = offsets[static_cast<std::size_t>(begin)], to = offsets[static_cast<std::size_t>(end)];
    if (is_send)
      schedule_.send(rows + from * count_, (to - from) * count_, process(peer), which, where);
    else
      schedule_.receive(rows + from * count_, (to - from) * count_, process(peer), which, where);
  };
  int low = 0, high = size;
  for (int distance = 1; distance < size; distance *= 2) {
    schedule_.begin_round();
    const int middle = (low + high + 1) / 2;
    if (high - low > 1) {
      if (me == low) pass(moved_displaced_, moves.displaced_offsets, middle, high, middle, true, tag);
      if (me == middle) pass(moved_displaced_, moves.displaced_offsets, middle, high, low, false, tag);
      (me < middle ? high : low) = middle;
    }
    if (!with_gather) continue;
    const int blocks = std::min(distance, size - distance);  // that I have, and pass on
    const auto gather = [&](int begin, int peer, bool is_send) {
      const int end = begin + blocks;
      pass(moved_gathered_, moves.offsets, begin, std::min(end, size), peer, is_send, tag + 1);
      if (end > size) pass(moved_gathered_, moves.offsets, 0, end - size, peer, is_send, tag + 1);
    };
    gather(me, (me - distance + size) % size, true);
    gather((me + distance) % size, (me + distance) % size, false);
  }
}

// Round the ring, as pieces of the processes' own sizes or, after a round in which they are made so, of equal size.
void RowExchange::roll(const RowMoves& moves, int tag) {
  const int size = grid_.rows(), me = moves.position;
  const MPI_Comm where = grid_.along_column();
  const auto process = [&](int position) { return (owner_row_ + position) % size; };
  std::vector<std::int64_t> pieces = moves.offsets;
  if (options_.equal_pieces) {
    for (int p = 0; p <= size; ++p) pieces[static_cast<std::size_t>(p)] = width_ * p / size;
    schedule_.begin_round();
    const auto overlap = [&](int owner, int receiver) {
      const auto o = static_cast<std::size_t>(owner), r = static_cast<std::size_t>(receiver);
      return std::pair(std::max(moves.offsets[o], pieces[r]), std::min(moves.offsets[o + 1], pieces[r + 1]));
    };
    for (int other = 0; other < size; ++other) {
      if (other == me) continue;
      const auto [leaves, leaves_end] = overlap(me, other);
      const auto [comes, comes_end] = overlap(other, me);
      schedule_.send(moved_gathered_ + leaves * count_, (leaves_end - leaves) * count_, process(other), tag + 1, where);
      schedule_.receive(moved_gathered_ + comes * count_, (comes_end - comes) * count_, process(other), tag + 1, where);
    }
  }
  const auto piece = [&](int position) {
    const auto p = static_cast<std::size_t>(position);
    return std::pair(moved_gathered_ + pieces[p] * count_, (pieces[p + 1] - pieces[p]) * count_);
  };
  const int next = (me + 1) % size, previous = (me + size - 1) % size;
  for (int round = 0; round + 1 < size; ++round) {
    const auto [leaves, leaves_count] = piece((me - round + size) % size);
    const auto [comes, comes_count] = piece((previous - round + size) % size);
    schedule_.begin_round();
    schedule_.send(leaves, leaves_count, process(next), tag + 1, where);
    schedule_.receive(comes, comes_count, process(previous), tag + 1, where);
  }
}

void RowExchange::finish(const RowMoves& moves, const RowLists& lists, Matrix& matrix, Traffic& traffic) {
  {
    const Timed timed(times_, Phase::swap);
    traffic.wait(schedule_);
  }
  if (count_ == 0) return;
  if (is_staged()) {
    const Timed timed(times_, Phase::to_gpu);
    const auto me = static_cast<std::size_t>(moves.position);
    stage(gathered_.data(), moved_gathered_, 0, width_);
    stage(displaced_.data(), moved_displaced_, moves.displaced_offsets[me], moves.displaced_offsets[me + 1]);
    gpu_->wait_for_copies();
  }
  const Timed timed(times_, Phase::swap);
  unpack(moves, lists, matrix);
}

void RowExchange::unpack(const RowMoves& moves, const RowLists& lists, Matrix& matrix) {
  const std::size_t rows = moves.arriving.size() + moves.gathered.size();
  const auto me = static_cast<std::size_t>(moves.position);
  const auto scatter = [=, displaced = displaced_.data() + moves.displaced_offsets[me] * count_, count = count_,
                        columns = matrix.at(0, first_), stride = matrix.stride(), gathered = gathered_.data(),
                        u = u_.data(), u_stride = u_stride_, transposed_u = options_.transposed_u] {
    scatter_rows(displaced, lists.arriving, count, columns, stride);
    if (!transposed_u) return scatter_rows(gathered, lists.gathered, count, u, u_stride);
    for (std::size_t r = 0; r < lists.gathered.size(); ++r)
      std::copy_n(gathered + static_cast<std::int64_t>(r) * count, count, u + lists.gathered[r] * u_stride);
  };
  if (gpu_ != nullptr)
    gpu_->launch(KernelWork::memory(copied_bytes(rows, count_)), scatter);
  else if (copies(rows, count_))
    scatter();
}

namespace {

// The rows that a panel's pivots exchange, in order.
std::vector<std::pair<std::int64_t, std::int64_t>> swaps_of(const double* pivots, std::int64_t column,
                                                            std::int64_t width) {
  std::vector<std::pair<std::int64_t, std::int64_t>> swaps;
  for (std::int64_t i = 0; i < width; ++i) {
    const auto row = static_cast<std::int64_t>(pivots[i]);
    if (row != column + i) swaps.emplace_back(column + i, row);
  }
  return swaps;
}

// Column by column; the next column's rows are asked for ahead, because each lies in a line of its own.
void swap_rows(const std::vector<std::pair<std::int64_t, std::int64_t>>& swaps, double* columns, std::int64_t stride,
               std::int64_t count) {
  constexpr std::int64_t kAhead = 2;
  for (std::int64_t c = 0; c < count; ++c) {
    double* column = columns + c * stride;
    const double* ahead = columns + std::min(c + kAhead, count - 1) * stride;
    for (const auto& [a, b] : swaps) {
      __builtin_prefetch(ahead + b, 1, 2);  // into the second cache, which has more requests open
      std::swap(column[a], column[b]);
    }
  }
}

}  // namespace

void exchange_rows_in_place(const Panel& panel, Matrix& matrix, std::int64_t first, std::int64_t count) {
  const auto swaps = swaps_of(panel.pivots(), panel.column, panel.width);
  if (copies(2 * swaps.size(), count)) swap_rows(swaps, matrix.at(0, first), matrix.stride(), count);
}

// The kernel reads the pivots where it is, so the host, which does not know them, launches it for all rows.
void exchange_rows_on_gpu(const Panel& panel, Matrix& matrix, std::int64_t first, std::int64_t count) {
  if (count == 0) return;
  const double* pivots = panel.used_top() + (panel.pivots() - panel.top());
  matrix.gpu()->launch(
      KernelWork::memory(copied_bytes(2 * static_cast<std::size_t>(panel.width), count)),
      [=, column = panel.column, width = panel.width, columns = matrix.at(0, first), stride = matrix.stride()] {
        swap_rows(swaps_of(pivots, column, width), columns, stride, count);
      });
}

}  // namespace dryfly::hpl
