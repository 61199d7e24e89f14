// Ranks in a three-dimensional grid, x running fastest, and what each exchanges with its neighbours: 6 across faces, or
// 26 with those across edges and corners, as stencils and particle codes have it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/unit/unit.hpp"

namespace dryfly::motif {

class Parameters;
class Rank;

struct Grid {
  std::array<std::uint32_t, 3> sides{1, 1, 1};
  bool closed = true;  // ranks at one end have those at the other as neighbours

  // As near to a cube as its ranks allow; larger sides first.
  static Grid near_cube(std::uint32_t ranks);
  // Parameters x, y, z; without them as above. Throws SpecError where they are not as many as the ranks.
  static Grid read(Parameters& parameters, std::uint32_t ranks);

  std::array<std::uint32_t, 3> place_of(std::uint32_t rank) const {
    return {rank % sides[0], rank / sides[0] % sides[1], rank / sides[0] / sides[1]};
  }
};

// One of 26 directions; of each axis 0, 1 or 2: back, along, on.
struct Heading {
  std::uint32_t x;
  std::uint32_t y;
  std::uint32_t z;
  Bytes size;

  std::uint32_t number() const { return x + 3 * y + 9 * z; }
};

struct Neighbourhood {
  Grid grid;
  std::vector<Heading> headings;  // in the order in which messages are begun

  // The same size across all faces, edges and corners; `corners`: the latter two are exchanged too.
  static Neighbourhood of_sizes(const Grid& grid, Bytes face, Bytes edge, Bytes corner, bool corners);
  // The outermost layer of a box of cells that each rank has, to all 26.
  static Neighbourhood of_box(const Grid& grid, const std::array<std::uint64_t, 3>& cells, Bytes of_cell);

  // Begins all receives, then all sends.
  void exchange(Rank& me) const;
  // Begins all receives. What comes has the number of its heading as its tag.
  void receive(Rank& me) const;
  // The rank there, or no_rank where the grid ends.
  static constexpr std::uint32_t no_rank = UINT32_MAX;
  std::uint32_t peer(const std::array<std::uint32_t, 3>& place, const Heading& heading) const;
};

}  // namespace dryfly::motif
