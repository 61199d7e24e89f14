// What a rank does for its memory at the end of MPI_Init, outside virtual time: pages that say the same in all ranks
// are kept once, and those of the segment that it is going to use are mapped.
#pragma once

#include <cstdint>

#include "rank/attachment.hpp"
#include "rank/common_table.hpp"
#include "rank/self.hpp"

namespace dryfly::rank {

class StartMemory {
 public:
  static constexpr std::uint64_t part_bytes = 64 * 1024;  // what the kernel maps at a fault

  StartMemory(const Attachment& attachment, const Self* self) : attachment_(attachment), self_(self) {}

  // The library has had the handle of one address written to this place.
  void address_inserted(const void* handle) { table_.inserted(handle); }
  // Before the gate that all ranks pass at the end of MPI_Init.
  void leave_common_pages() const;
  void map_ahead() const;
  // Behind it.
  void share_common_pages() const;

 private:
  const Attachment& attachment_;
  const Self* self_;
  CommonTable table_;
};

}  // namespace dryfly::rank
