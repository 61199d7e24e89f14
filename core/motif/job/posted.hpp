// The receives of a rank that wait for a message, oldest first.
//
// Each message looks through those of its target, and these are nowhere in the cache, so that what it compares lies in
// one place, and that on large pages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/motif/job/frames.hpp"
#include "core/unit/fetch.hpp"

namespace dryfly::motif {

inline constexpr std::uint32_t any_rank = ~std::uint32_t{0};
inline constexpr std::uint32_t any_tag = ~std::uint32_t{0};
inline constexpr std::uint32_t no_record = ~std::uint32_t{0};

// A receive that waits for a message.
struct Posted {
  std::uint32_t source = any_rank;
  std::uint32_t tag = 0;
  std::uint32_t record = no_record;
};

class PostedList {
 public:
  PostedList() = default;
  PostedList(PostedList&& other) noexcept
      : items_(std::exchange(other.items_, nullptr)),
        count_(std::exchange(other.count_, 0)),
        room_(std::exchange(other.room_, 0)) {}
  PostedList& operator=(PostedList&&) = delete;
  ~PostedList() {
    if (items_ != nullptr) Frames::give_back(items_, room_ * sizeof(Posted));
  }

  bool empty() const { return count_ == 0; }
  const Posted& front() const { return *items_; }
  void append(Frames& frames, Posted posted) {
    if (count_ == room_) grow(frames);
    items_[count_++] = posted;
  }
  // Takes the first that wants a message of that source and tag; no_record: there is none.
  std::uint32_t take(std::uint32_t source, std::uint32_t tag) {
    const std::uint32_t at = place(source, tag, count_);
    if (at == count_) return no_record;
    const std::uint32_t record = items_[at].record;
    std::move(items_ + at + 1, items_ + count_, items_ + at);
    --count_;
    return record;
  }
  // Into the cache: as many as most ranks have.
  void prefetch() const { fetch_lines(items_, near() * sizeof(Posted)); }
  // What take() would, if it is among those.
  std::uint32_t find_near(std::uint32_t source, std::uint32_t tag) const {
    const std::uint32_t at = place(source, tag, near());
    return at == near() ? no_record : items_[at].record;
  }

 private:
  static constexpr std::uint32_t room_at_first = 4;

  std::uint32_t near() const { return std::min(count_, std::uint32_t{27}); }
  // Among the first so many, which else is the answer.
  std::uint32_t place(std::uint32_t source, std::uint32_t tag, std::uint32_t among) const {
    const Posted* const found = std::find_if(items_, items_ + among, [&](const Posted& posted) {
      return (posted.tag == tag || posted.tag == any_tag) && (posted.source == source || posted.source == any_rank);
    });
    return static_cast<std::uint32_t>(found - items_);
  }
  void grow(Frames& frames) {
    const std::uint32_t room = std::max(room_at_first, room_ * 2);
    auto* const items = static_cast<Posted*>(frames.take(room * sizeof(Posted)));
    std::uninitialized_copy(items_, items_ + count_, items);
    if (items_ != nullptr) Frames::give_back(items_, room_ * sizeof(Posted));
    items_ = items;
    room_ = room;
  }

  Posted* items_ = nullptr;
  std::uint32_t count_ = 0;
  std::uint32_t room_ = 0;
};

}  // namespace dryfly::motif
