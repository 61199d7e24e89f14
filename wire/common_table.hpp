// MPICH's table of addresses, kept once for all ranks. MPICH 5 has one entry for each rank of the job, 32 KiB apart,
// and uses some 30 bytes of each, so each pair of ranks costs a page: 4.2 GB in a run of 1,024 ranks. A rank inserts
// itself first and the others in their order, so of each entry there are two kinds: that of the ranks before it and
// that of the ranks behind it. At the end of MPI_Init the first and the last rank leave copies of their pages in the
// shared segment, and each rank that finds the same in its own maps those over them, privately: a page that somebody
// writes to later becomes its own again, so the program sees no difference.
//
// Where the table lies is seen from fi_av_insert, which MPICH calls once for each entry and has it write the handle
// there. Tables of another shape, of processes with several threads, and of runs with few ranks are left as they are.
#pragma once

#include <cstdint>
#include <numeric>

#include "wire/wire.hpp"

namespace dryfly::wire {

class CommonTable {
 public:
  // Below, the memory is not worth the time.
  static constexpr std::uint64_t least_entries = 400;

  // One address has been inserted, its handle is written to `handle`.
  void inserted(const void* handle) {
    const auto at = reinterpret_cast<std::uintptr_t>(handle);
    if (entries_ == 0) lowest_ = highest_ = at;
    stride_ = std::gcd(stride_, at > lowest_ ? at - lowest_ : lowest_ - at);
    if (at < lowest_) lowest_ = at;
    if (at > highest_) highest_ = at;
    ++entries_;
  }
  // Before the gate that all ranks pass at the end of MPI_Init: the first and the last rank leave their copies.
  void leave_copy(std::uint32_t rank, char* base, SegmentHeader& header) const;
  // Behind it: replaces the pages of the table by the common ones. `descriptor` is the segment's and is closed.
  void share(char* base, const SegmentHeader& header, int descriptor) const;

 private:
  bool is_worth_sharing(const SegmentHeader& header) const;
  char* first_page() const { return reinterpret_cast<char*>(lowest_ & ~std::uintptr_t{4095}); }
  std::uint64_t pages() const { return highest_ / 4096 - lowest_ / 4096 + 1; }

  std::uintptr_t lowest_ = 0;
  std::uintptr_t highest_ = 0;
  std::uintptr_t stride_ = 0;  // the greatest that all distances between entries are multiples of
  std::uint64_t entries_ = 0;
};

}  // namespace dryfly::wire
