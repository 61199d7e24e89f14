// The ring into which the conductor writes a rank's events, in the order of their instants.
#pragma once

#include <cstdint>

#include "core/unit/check.hpp"
#include "wire/wire.hpp"

namespace dryfly::rank {

class EventRing {
 public:
  // `bytes`: a power of two.
  EventRing(wire::RankPage* page, char* ring, std::uint32_t bytes) : page_(page), ring_(ring), bytes_(bytes) {
    DRYFLY_CHECK((bytes & (bytes - 1)) == 0);
  }

  // Null if there is none. It may lie in the rank's future.
  const wire::Event* oldest() {
    if (tail_ == page_->event_head.load(std::memory_order_acquire)) return nullptr;
    if (event_at(tail_)->record_bytes == wire::wrap_record) tail_ = behind_end(tail_);
    return event_at(tail_);
  }
  // Null if the oldest is visible later.
  const wire::Event* visible(std::uint64_t now_ps) {
    const wire::Event* event = oldest();
    return event != nullptr && event->at_ps <= now_ps ? event : nullptr;
  }
  void pop() {
    const std::uint32_t record = event_at(tail_)->record_bytes;
    DRYFLY_CHECK(record != wire::wrap_record && record >= wire::event_bytes);
    tail_ += record;
    page_->event_tail.store(tail_, std::memory_order_release);
  }
  // All that are there, and visible at whatever instant.
  template <class Visit>
  void for_each(Visit visit) {
    const std::uint64_t end = page_->event_head.load(std::memory_order_acquire);
    for (std::uint64_t at = tail_; at != end;) {
      wire::Event* event = event_at(at);
      if (event->record_bytes == wire::wrap_record) {
        at = behind_end(at);
        continue;
      }
      visit(*event);
      at += event->record_bytes;
    }
  }

 private:
  wire::Event* event_at(std::uint64_t position) const {
    return reinterpret_cast<wire::Event*>(ring_ + (position & (bytes_ - 1)));
  }
  std::uint64_t behind_end(std::uint64_t position) const { return position + bytes_ - (position & (bytes_ - 1)); }

  wire::RankPage* page_;
  char* ring_;
  std::uint32_t bytes_;
  std::uint64_t tail_ = 0;  // bytes consumed, ever
};

}  // namespace dryfly::rank
