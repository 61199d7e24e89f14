// Blocks of the shared arena: allocated by one process, read and freed by another. The allocator belongs to one
// process and keeps, per size class, a circular list of the blocks it has carved; freeing is one store by whoever
// has finished with the payload. Allocation looks at a few blocks from where it last stopped and carves a new one
// when those are still in use, so one payload that stays for long holds up nobody.
//
// What is known of a block lies apart from it: a process that frees many blocks of many others then touches few pages,
// and a payload of a page touches one.
#pragma once

#include <atomic>
#include <cstdint>

#include "wire/wire.hpp"

namespace dryfly::wire {

class Arena {
 public:
  // `hands`: where the lists begin, if whoever comes after this process is to go on with them.
  void open(char* base, SegmentHeader* header, std::uint64_t* hands = nullptr) {
    base_ = base;
    header_ = header;
    hands_ = hands != nullptr ? hands : own_hands_;
  }

  // Offset of `bytes` usable bytes, or 0 when the arena is full.
  std::uint64_t allocate(std::uint64_t bytes) {
    if (bytes > header_->arena.bytes) return 0;
    const std::uint32_t size_class = class_of(bytes);
    std::uint64_t& hand = hands_[size_class];
    if (hand != 0) {
      constexpr int looks = 8;
      for (int look = 0; look < looks; ++look) {
        hand = next(hand);
        if (state(base_, hand).load(std::memory_order_acquire) == 0) return take(hand);
      }
    }
    return carve(std::uint64_t{arena_granule} << size_class, hand) ? take(hand) : 0;
  }

  // For any process: `offset` as allocate() returned it. It looks before it writes because the kernel maps 16 pages at
  // a time to who looks, and one to who writes.
  static void free(char* base, std::uint64_t offset) {
    std::atomic<std::uint8_t>& freed = state(base, offset);
    if (freed.load(std::memory_order_relaxed) != 0) freed.store(0, std::memory_order_release);
  }

 private:
  static constexpr std::uint64_t page_bytes = 4096;

  static constexpr std::uint32_t class_of(std::uint64_t bytes) {
    std::uint32_t size_class = 0;
    while ((std::uint64_t{arena_granule} << size_class) < bytes) ++size_class;
    return size_class;
  }
  // Takes whole pages, and puts the blocks they are cut into behind `hand`, which then is at the first of them.
  bool carve(std::uint64_t whole, std::uint64_t& hand) {
    const std::uint64_t bytes = whole < page_bytes ? page_bytes : whole;
    const std::uint64_t first = header_->arena_top.fetch_add(bytes, std::memory_order_relaxed);
    if (first + bytes > header_->arena.offset + header_->arena.bytes) {
      header_->arena_top.fetch_sub(bytes, std::memory_order_relaxed);
      return false;
    }
    const std::uint64_t last = first + bytes - whole;
    for (std::uint64_t at = first; at < last; at += whole) next(at) = at + whole;
    next(last) = hand == 0 ? first : next(hand);
    if (hand != 0) next(hand) = first;
    hand = first;
    return true;
  }
  std::uint64_t take(std::uint64_t at) {
    state(base_, at).store(1, std::memory_order_relaxed);
    return at;
  }
  std::uint64_t& next(std::uint64_t at) const {
    const std::uint64_t granule = (at - header_->arena.offset) / arena_granule;
    return reinterpret_cast<std::uint64_t*>(base_ + header_->arena.links_offset)[granule];
  }
  static std::atomic<std::uint8_t>& state(char* base, std::uint64_t at) {
    const auto* header = reinterpret_cast<const SegmentHeader*>(base);
    const std::uint64_t granule = (at - header->arena.offset) / arena_granule;
    return reinterpret_cast<std::atomic<std::uint8_t>*>(base + header->arena.states_offset)[granule];
  }

  char* base_ = nullptr;
  SegmentHeader* header_ = nullptr;
  std::uint64_t own_hands_[arena_size_classes] = {};
  std::uint64_t* hands_ = own_hands_;
};

}  // namespace dryfly::wire
