// How the processes of a column agree on a pivot: the candidates' rows travel with the search, as in
// programs/hpl/panel.cpp.
#pragma once

#include <cstdint>

#include "core/motif/job/rank.hpp"
#include "core/motif/job/task.hpp"
#include "core/motif/workload/hpl/problem.hpp"

namespace dryfly::motif::hpl {

struct PivotMessage {
  const Problem* problem = nullptr;
  std::uint32_t row = 0;  // of this process
  std::uint32_t column = 0;
  Bytes size;
  Lane lane = 0;
};

// Recursive doubling, where processes beyond the largest power of two take part through another.
Task exchange_candidates(Rank& me, PivotMessage message);
// MPI_Allreduce as MPICH does it for one element of the user's own type: recursive doubling, where of the first
// processes the even ones take part through the odd ones.
Task allreduce_candidates(Rank& me, PivotMessage message);

}  // namespace dryfly::motif::hpl
