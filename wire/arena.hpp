// Blocks of the shared arena: allocated by one process, read and freed by another. The allocator belongs to one
// process and keeps, per size class, a circular list of the blocks it has carved; freeing is one store by whoever
// has finished with the payload. Allocation looks at a few blocks from where it last stopped and carves a new one
// when those are still in use, so one payload that stays for long holds up nobody.
#pragma once

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
    if (bytes > header_->arena_bytes) return 0;
    const std::uint32_t size_class = class_of(bytes);
    std::uint64_t& hand = hands_[size_class];
    if (hand != 0) {
      constexpr int looks = 8;
      for (int look = 0; look < looks; ++look) {
        const std::uint64_t next = block(hand)->next_offset;
        hand = next;
        if (block(next)->state.load(std::memory_order_acquire) == 0) return take(next);
      }
    }
    const std::uint64_t whole = sizeof(ArenaBlock) + (std::uint64_t{1} << (size_class + smallest_shift));
    const std::uint64_t at = header_->arena_top.fetch_add(whole, std::memory_order_relaxed);
    if (at + whole > header_->arena_offset + header_->arena_bytes) {
      header_->arena_top.fetch_sub(whole, std::memory_order_relaxed);
      return 0;
    }
    ArenaBlock* fresh = block(at);
    fresh->size_class = size_class;
    fresh->bytes = whole - sizeof(ArenaBlock);
    if (hand == 0) {
      fresh->next_offset = at;
    } else {
      fresh->next_offset = block(hand)->next_offset;
      block(hand)->next_offset = at;
    }
    hand = at;
    return take(at);
  }

  // For any process: `offset` as allocate() returned it.
  static void free(char* base, std::uint64_t offset) {
    reinterpret_cast<ArenaBlock*>(base + offset - sizeof(ArenaBlock))->state.store(0, std::memory_order_release);
  }

 private:
  static constexpr std::uint32_t smallest_shift = 8;

  static constexpr std::uint32_t class_of(std::uint64_t bytes) {
    std::uint32_t size_class = 0;
    while ((std::uint64_t{1} << (size_class + smallest_shift)) < bytes) ++size_class;
    return size_class;
  }
  ArenaBlock* block(std::uint64_t at) const { return reinterpret_cast<ArenaBlock*>(base_ + at); }
  std::uint64_t take(std::uint64_t at) {
    block(at)->state.store(1, std::memory_order_relaxed);
    return at + sizeof(ArenaBlock);
  }

  char* base_ = nullptr;
  SegmentHeader* header_ = nullptr;
  std::uint64_t own_hands_[arena_size_classes] = {};
  std::uint64_t* hands_ = own_hands_;
};

}  // namespace dryfly::wire
