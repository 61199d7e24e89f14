// The triangular solve behind the factorisation, as programs/hpl/solve.cpp does it: block by block from the last, a
// reduction along a process row and a broadcast along a process column, and then the sum of all parts of the solution.
// The collectives are MPICH's for these sizes (docs/model/skeleton-hpl.md#solve).
#pragma once

#include <cstdint>

#include "core/motif/job/task.hpp"
#include "core/motif/workload/hpl/setting.hpp"

namespace dryfly::motif::hpl {

// Blocks first to last; the later are solved first.
Task back_substitute(Rank& me, Setting& setting, std::uint64_t first, std::uint64_t last);
Task gather_solution(Rank& me, Setting& setting);

}  // namespace dryfly::motif::hpl
