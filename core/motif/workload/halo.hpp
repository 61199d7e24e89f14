// Exchange with the neighbours of a three-dimensional grid, in a loop.
#pragma once

#include <cstdint>

#include "core/motif/job/task.hpp"
#include "core/motif/workload/grid.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif {

struct Halo {
  Neighbourhood around;
  std::uint64_t steps = 1;
  Duration work{};  // of a step
};

// `halo` has to outlive it.
Task exchange_halo(Rank& me, const Halo& halo);

}  // namespace dryfly::motif
