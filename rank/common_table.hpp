// MPICH's table of addresses, of which most is the same in all ranks (common_pages.hpp). MPICH 5 has one entry for each
// rank of the job, 32 KiB apart, and uses some 30 bytes of each, so each pair of ranks costs a page: 4.2 GB in a run of
// 1,024 ranks. A rank inserts itself first and the others in their order, so of each entry there are two kinds: that of
// the ranks before it and that of the ranks behind it. The first and the last rank have both.
//
// Where the table lies is seen from fi_av_insert, which MPICH calls once for each entry and has it write the handle
// there. Tables of another shape are left as they are.
#pragma once

#include <cstdint>
#include <numeric>

#include "rank/common_pages.hpp"

namespace dryfly::rank {

class CommonTable {
 public:
  // One address has been inserted, its handle is written to `handle`.
  void inserted(const void* handle) {
    const auto at = reinterpret_cast<std::uintptr_t>(handle);
    if (entries_ == 0) lowest_ = highest_ = at;
    stride_ = std::gcd(stride_, at > lowest_ ? at - lowest_ : lowest_ - at);
    if (at < lowest_) lowest_ = at;
    if (at > highest_) highest_ = at;
    ++entries_;
  }
  // None, if it is not a table with an entry for each rank.
  CommonPages pages(std::uint32_t ranks) const {
    const bool is_table = entries_ == ranks && stride_ >= page_bytes && highest_ - lowest_ == stride_ * (entries_ - 1);
    if (!is_table) return {};
    return {reinterpret_cast<char*>(lowest_ & ~std::uintptr_t{page_bytes - 1}),
            highest_ / page_bytes - lowest_ / page_bytes + 1};
  }

 private:
  static constexpr std::uint64_t page_bytes = 4096;

  std::uintptr_t lowest_ = 0;
  std::uintptr_t highest_ = 0;
  std::uintptr_t stride_ = 0;  // the greatest that all distances between entries are multiples of
  std::uint64_t entries_ = 0;
};

}  // namespace dryfly::rank
