// What HPL solves and how: order, block, grid, and the variants that HPL.dat knows, by the names of `dryfly-hpl`
// (programs/hpl/README.md).
#pragma once

#include <cstdint>
#include <vector>

#include "core/motif/workload/workload.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif::hpl {

// One dimension of the block-cyclic distribution: `count` indices, dealt out in blocks to so many processes.
struct Cyclic {
  std::uint64_t count = 0;
  std::uint64_t block = 1;
  std::uint32_t processes = 1;

  std::uint32_t owner(std::uint64_t index) const { return static_cast<std::uint32_t>(index / block % processes); }
  std::uint64_t global(std::uint64_t position, std::uint32_t process) const {
    return (position / block * processes + process) * block + position % block;
  }
  // How many of the indices below `index` the process has.
  std::uint64_t below(std::uint64_t index, std::uint32_t process) const {
    const std::uint64_t blocks = index / block;
    const std::uint64_t full = blocks / processes;
    const std::uint64_t rest = blocks % processes;
    if (process < rest) return (full + 1) * block;
    return full * block + (process == rest ? index % block : 0);
  }
  std::uint64_t size(std::uint32_t process) const { return below(count, process); }
};

enum class Broadcast : std::uint8_t { ring, ring_modified, two_rings, two_rings_modified, long_message, long_modified };
enum class Swap : std::uint8_t { binary, spread, mix };
enum class Recursion : std::uint8_t { left, crout, right };
// Hybrids: point to point in all of the first panel, or in the first column of each panel.
enum class PivotSearch : std::uint8_t { point_to_point, collective, hybrid_panel, hybrid_column };

struct Problem {
  std::uint64_t order = 0;
  std::uint64_t block = 0;
  std::uint32_t rows = 1;  // of the grid
  std::uint32_t columns = 1;
  bool row_major = true;
  Broadcast broadcast = Broadcast::ring_modified;
  Swap swap = Swap::mix;
  std::uint64_t swap_threshold = 64;
  bool equal_pieces = true;
  std::uint64_t depth = 1;
  std::uint64_t split = 2;
  Recursion recursion = Recursion::right;
  std::uint64_t leaf_columns = 8;
  std::uint64_t pieces = 2;
  PivotSearch search = PivotSearch::point_to_point;
  std::uint64_t panel_cache = 0;  // bytes that stay in caches while a leaf of a panel is factored

  // Takes what is the problem's from the parameters; SpecError.
  static Problem read(Parameters& parameters, std::uint32_t ranks);

  Cyclic row_blocks() const { return {order, block, rows}; }
  Cyclic column_blocks() const { return {order + 1, block, columns}; }  // with b
  std::uint64_t panels() const { return (order + block - 1) / block; }
  std::uint32_t row_of(std::uint32_t rank) const { return row_major ? rank / columns : rank % rows; }
  std::uint32_t column_of(std::uint32_t rank) const { return row_major ? rank % columns : rank / rows; }
  std::uint32_t rank_at(std::uint32_t row, std::uint32_t column) const {
    return row_major ? row * columns + column : column * rows + row;
  }
  // How often memory has to carry each column of a leaf: searched, scaled, and subtracted from half of the others on
  // average; twice, where all of it stays in caches.
  std::uint64_t leaf_passes(std::uint64_t width, std::uint64_t height) const;
  // 2/3 N^3 + 3/2 N^2, as HPL counts.
  double operations() const {
    const auto n = static_cast<double>(order);
    return 2.0 / 3.0 * n * n * n + 1.5 * n * n;
  }
};

// The distance between two columns of a panel that is sent: a multiple of 8 elements, no multiple of a page.
std::uint64_t column_stride(std::uint64_t rows);

constexpr std::uint64_t element_bytes = 8;

}  // namespace dryfly::motif::hpl
