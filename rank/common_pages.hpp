// Pages that say the same in all ranks, kept once for all. At the end of MPI_Init the first and the last rank leave
// copies of theirs in the shared segment, and each rank that finds the same in its own maps those over them, privately:
// a page that somebody writes to later becomes its own again, so the program sees no difference. The caller names
// memory of the MPI library that nobody uses meanwhile. Processes with several threads, and runs with few ranks, keep
// what they have.
#pragma once

#include <cstdint>

#include "wire/wire.hpp"

namespace dryfly::rank {

struct CommonPages {
  // Below, the memory is not worth the time.
  static constexpr std::uint32_t least_ranks = 400;

  char* first = nullptr;  // on a page's boundary
  std::uint64_t count = 0;

  // Before the gate that all ranks pass at the end of MPI_Init.
  void leave_copy(std::uint32_t rank, char* base, const wire::SegmentHeader& header, wire::CommonCopies& room) const;
  // Behind it. `descriptor` is the segment's.
  void share(char* base, const wire::SegmentHeader& header, const wire::CommonCopies& room, int descriptor) const;

 private:
  bool may_be_shared(const wire::SegmentHeader& header, const wire::CommonCopies& room) const;
};

}  // namespace dryfly::rank
