// Exchange with the neighbours of a three-dimensional grid that is closed in all directions, in a loop: 6 faces, or 26
// with edges and corners, as stencils and particle codes have it. Ranks are laid out with x running fastest.
#pragma once

#include <array>
#include <cstdint>

#include "core/motif/job/task.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif {

struct Halo {
  std::array<std::uint32_t, 3> grid{};
  Bytes face;
  Bytes edge;
  Bytes corner;
  bool corners = true;  // and edges
  std::uint64_t steps = 1;
  Duration work{};  // of a step
};

// `halo` has to outlive it.
Task exchange_halo(Rank& me, const Halo& halo);

}  // namespace dryfly::motif
