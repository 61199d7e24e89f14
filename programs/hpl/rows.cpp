#include "rows.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "work.hpp"

namespace dryfly::hpl {
namespace {

constexpr std::int64_t kColumnsAtOnce = 8;  // packed together, so that a cache line of the target is written once

// Row `row` of the columns becomes contiguous.
void gather_rows(const double* columns, std::int64_t stride, const std::vector<std::int64_t>& rows, std::int64_t count,
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

void scatter_rows(const double* source, const std::vector<std::int64_t>& rows, std::int64_t count, double* columns,
                  std::int64_t stride) {
  for (std::int64_t c = 0; c < count; c += kColumnsAtOnce) {
    const std::int64_t end = std::min(count, c + kColumnsAtOnce);
    for (std::size_t r = 0; r < rows.size(); ++r)
      for (std::int64_t k = c; k < end; ++k)
        columns[rows[r] + k * stride] = source[static_cast<std::int64_t>(r) * count + k];
  }
}

// Rows are read in one place and written in another.
bool copies(std::size_t rows, std::int64_t columns) {
  return memory_traffic(2 * static_cast<std::int64_t>(rows * sizeof(double)) * columns);
}

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

void RowExchange::start(const Panel& panel, const RowMoves& moves, Matrix& matrix, std::int64_t first,
                        std::int64_t count, int tag, Traffic& traffic) {
  first_ = first;
  count_ = count;
  width_ = panel.width;
  owner_row_ = panel.owner_row;
  u_stride_ = options_.transposed_u ? std::max<std::int64_t>(count, 1) : width_;
  schedule_.clear();
  if (count == 0) return;
  reserve(gathered_, width_ * count);
  reserve(displaced_, width_ * count);
  reserve(u_, width_ * count);
  pack(panel, moves, matrix);
  const bool binary =
      options_.kind == SwapKind::binary || (options_.kind == SwapKind::mix && count <= options_.threshold);
  spread(moves, tag, binary);
  if (!binary) roll(moves, tag);
  traffic.start(schedule_);
}

void RowExchange::pack(const Panel& panel, const RowMoves& moves, Matrix& matrix) {
  const auto me = static_cast<std::size_t>(moves.position);
  if (!copies(moves.mine.size() + (moves.position == 0 ? moves.displaced.size() : 0), count_)) return;
  gather_rows(matrix.at(0, first_), matrix.stride(), moves.mine, count_, gathered_.data() + moves.offsets[me] * count_);
  if (moves.position != 0) return;
  const double* top = matrix.at(panel.first_row - panel.width, first_);
  gather_rows(top, matrix.stride(), moves.displaced, count_, displaced_.data());
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
      if (me == low) pass(displaced_.data(), moves.displaced_offsets, middle, high, middle, true, tag);
      if (me == middle) pass(displaced_.data(), moves.displaced_offsets, middle, high, low, false, tag);
      (me < middle ? high : low) = middle;
    }
    if (!with_gather) continue;
    const int blocks = std::min(distance, size - distance);  // that I have, and pass on
    const auto gather = [&](int begin, int peer, bool is_send) {
      const int end = begin + blocks;
      pass(gathered_.data(), moves.offsets, begin, std::min(end, size), peer, is_send, tag + 1);
      if (end > size) pass(gathered_.data(), moves.offsets, 0, end - size, peer, is_send, tag + 1);
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
      schedule_.send(gathered_.data() + leaves * count_, (leaves_end - leaves) * count_, process(other), tag + 1,
                     where);
      schedule_.receive(gathered_.data() + comes * count_, (comes_end - comes) * count_, process(other), tag + 1,
                        where);
    }
  }
  const auto piece = [&](int position) {
    const auto p = static_cast<std::size_t>(position);
    return std::pair(gathered_.data() + pieces[p] * count_, (pieces[p + 1] - pieces[p]) * count_);
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

void RowExchange::finish(const Panel& panel, const RowMoves& moves, Matrix& matrix) {
  if (count_ == 0 || !copies(moves.arriving.size() + moves.gathered.size(), count_)) return;
  const auto me = static_cast<std::size_t>(moves.position);
  scatter_rows(displaced_.data() + moves.displaced_offsets[me] * count_, moves.arriving, count_, matrix.at(0, first_),
               matrix.stride());
  if (!options_.transposed_u) {
    scatter_rows(gathered_.data(), moves.gathered, count_, u_.data(), u_stride_);
  } else {
    for (std::size_t r = 0; r < moves.gathered.size(); ++r)
      std::copy_n(gathered_.data() + static_cast<std::int64_t>(r) * count_, count_,
                  u_.data() + moves.gathered[r] * u_stride_);
  }
  (void)panel;
}

void exchange_rows_in_place(const Panel& panel, Matrix& matrix, std::int64_t first, std::int64_t count) {
  // In order, column by column; the next column's rows are asked for ahead, because each lies in a line of its own.
  std::vector<std::pair<std::int64_t, std::int64_t>> swaps;
  for (std::int64_t i = 0; i < panel.width; ++i) {
    const auto row = static_cast<std::int64_t>(panel.pivots()[i]);
    if (row != panel.column + i) swaps.emplace_back(panel.column + i, row);
  }
  if (!copies(2 * swaps.size(), count)) return;
  constexpr std::int64_t kAhead = 2;
  for (std::int64_t c = 0; c < count; ++c) {
    double* column = matrix.at(0, first + c);
    const double* ahead = matrix.at(0, first + std::min(c + kAhead, count - 1));
    for (const auto& [a, b] : swaps) {
      __builtin_prefetch(ahead + b, 1, 2);  // into the second cache, which has more requests open
      std::swap(column[a], column[b]);
    }
  }
}

}  // namespace dryfly::hpl
