#include "conductor/rank.hpp"

#include <cstring>

#include "wire/futex.hpp"

namespace dryfly {

void nudge(wire::RankPage& page) {
  constexpr std::uint32_t count_mask = (1U << wire::nudge_bits) - 1;
  const std::uint32_t word = page.released.load(std::memory_order_relaxed);
  page.released.store((word & ~count_mask) | ((word + 1) & count_mask), std::memory_order_seq_cst);
  if (page.asleep.load(std::memory_order_seq_cst) != 0) wire::futex_wake(page.released);
}

bool write_event(const Segment& segment, Rank& rank, const PendingEvent& pending) {
  const std::uint32_t ring = segment.header().event_ring_bytes;
  const auto payload = static_cast<std::uint32_t>(pending.inline_payload.size());
  const std::uint32_t bytes =
      (wire::event_bytes + payload + wire::record_granule - 1) / wire::record_granule * wire::record_granule;
  const std::uint64_t to_end = ring - rank.events.head % ring;
  const std::uint64_t taken = rank.page->event_tail.load(std::memory_order_acquire);
  const bool rewinds = taken == rank.events.head && ring - to_end >= wire::ring_rewind_bytes;
  const bool wraps = bytes > to_end || rewinds;
  if (rank.events.head + (wraps ? bytes + to_end : bytes) - taken > ring) return false;
  if (wraps) {
    *reinterpret_cast<std::uint32_t*>(rank.events.ring + rank.events.head % ring) = wire::wrap_record;
    rank.events.head += to_end;
  }
  char* record = rank.events.ring + rank.events.head % ring;
  std::memcpy(record, &pending.event, sizeof pending.event);
  reinterpret_cast<wire::Event*>(record)->record_bytes = bytes;
  if (payload != 0) std::memcpy(record + wire::event_bytes, pending.inline_payload.data(), payload);
  rank.events.head += bytes;
  rank.page->event_head.store(rank.events.head, std::memory_order_release);
  return true;
}

std::uint64_t next_event_ps(const Segment& segment, const Rank& rank) {
  const std::uint64_t at = rank.page->event_tail.load(std::memory_order_acquire);
  if (at != rank.events.head) {
    const std::uint32_t ring = segment.header().event_ring_bytes;
    const auto* event = reinterpret_cast<const wire::Event*>(rank.events.ring + at % ring);
    if (event->record_bytes == wire::wrap_record) event = reinterpret_cast<const wire::Event*>(rank.events.ring);
    return event->at_ps;
  }
  return rank.events.overflow.empty() ? never.ps : rank.events.overflow.front().event.at_ps;
}

}  // namespace dryfly
