// The boxes of a fast multipole method and who needs whose expansions: a closed cube of boxes, cut into pieces, one for
// each rank of a group, and what lies up to two boxes around each piece, which holds the interaction lists of its boxes
// (docs/model/skeleton-fmm.md). Numbers and order are those of programs/proxy/fmm.c.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/motif/workload/grid.hpp"

namespace dryfly::motif::fmm {

// So many operations in a row with the same rank of the group.
struct Run {
  std::uint32_t rank;
  std::uint32_t count;
};

class Cube {
 public:
  // Throws SpecError where a piece would be thinner than two boxes.
  Cube(std::uint32_t boxes, std::uint32_t ranks);

  const Grid& grid() const { return grid_; }
  // What a rank gets, box after box, x running fastest; what lies in its own piece is left out.
  std::vector<Run> gets(std::uint32_t rank) const;
  // What each rank puts: for each target in turn what that one would get of it.
  std::vector<std::vector<Run>> puts() const;

 private:
  std::uint32_t begin(std::uint32_t part, std::size_t axis) const {
    return static_cast<std::uint32_t>(std::uint64_t{part} * boxes_ / grid_.sides[axis]);
  }
  // Of an axis, for each box from two before a piece to two behind it: the part that it lies in.
  std::vector<std::uint32_t> parts_around(std::uint32_t part, std::size_t axis) const;

  std::uint32_t boxes_;
  Grid grid_;
};

// Where the operations of a group's ranks stand in its list: all of a rank together, or an operation of each in turn.
class List {
 public:
  List(const std::vector<std::uint32_t>& counts, bool in_turns);
  std::uint64_t size() const { return size_; }
  // Of each operation of a rank.
  std::vector<std::uint64_t> positions(std::uint32_t rank) const;

 private:
  const std::vector<std::uint32_t>& counts_;
  std::vector<std::uint64_t> turns_;  // where each turn begins; empty: ranks stand together
  std::uint64_t size_ = 0;
};

}  // namespace dryfly::motif::fmm
