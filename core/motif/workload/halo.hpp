// Exchange with the neighbours of a three-dimensional grid that is closed in all directions, in a loop: 6 faces, or 26
// with edges and corners, as stencils and particle codes have it. Ranks are laid out with x running fastest.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

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

// When steps ended: of each, the sum over ranks.
using StepEnds = std::vector<std::uint64_t>;

// `halo` has to outlive it, and `ends`, if there are any, which have room for all steps.
Task exchange_halo(Rank& me, const Halo& halo, StepEnds* ends = nullptr);

}  // namespace dryfly::motif
