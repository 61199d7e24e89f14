#include "rank/start_memory.hpp"

namespace dryfly::rank {

void StartMemory::leave_common_pages() const {
  wire::SegmentHeader& header = *attachment_.header;
  const std::uint32_t rank = attachment_.welcome.rank;
  table_.pages(header.rank_count).leave_copy(rank, attachment_.base, header, header.table);
  self_->first_requests.leave_copy(rank, attachment_.base, header, header.requests);
}

void StartMemory::share_common_pages() const {
  const wire::SegmentHeader& header = *attachment_.header;
  const int segment = attachment_.segment_descriptor();
  if (segment < 0) return;
  table_.pages(header.rank_count).share(attachment_.base, header, header.table, segment);
  self_->first_requests.share(attachment_.base, header, header.requests, segment);
}

// In a job whose ranks all talk to each other each rank visits all of what payloads take first, at a fault for each
// part. Taken here, these faults do not fall into the middle of an exchange.
void StartMemory::map_ahead() const {
  const wire::SegmentHeader& header = *attachment_.header;
  const auto map = [this](std::uint64_t offset, std::uint64_t bytes) {
    for (std::uint64_t at = 0; at < bytes; at += part_bytes) {
      static_cast<void>(*static_cast<const volatile char*>(attachment_.base + offset + at));
    }
  };
  map(header.rank_area_offset + header.rank_area_stride * attachment_.welcome.rank, header.rank_area_stride);
  map(header.arena.states_offset, header.arena.ahead_bytes / wire::arena_granule);
  map(header.arena.offset, header.arena.ahead_bytes);
}

}  // namespace dryfly::rank
