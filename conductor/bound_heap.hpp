// For each rank the earliest instant at which it may still act, and the smallest of them: an indexed binary heap.
// Equal bounds are ordered by rank.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/unit/unit.hpp"

namespace dryfly {

class BoundHeap {
 public:
  explicit BoundHeap(std::uint32_t ranks) : bound_(ranks, never.ps), heap_(ranks), place_(ranks) {
    for (std::uint32_t rank = 0; rank < ranks; ++rank) heap_[rank] = place_[rank] = rank;
  }

  RankId top() const { return RankId{heap_[0]}; }
  std::uint64_t bound(RankId rank) const { return bound_[rank.value]; }
  std::uint64_t least() const { return bound_[heap_[0]]; }

  void set(RankId rank, std::uint64_t bound) {
    bound_[rank.value] = bound;
    std::uint32_t at = place_[rank.value];
    while (at > 0 && before(heap_[at], heap_[(at - 1) / 2])) at = swap(at, (at - 1) / 2);
    for (;;) {
      std::uint32_t child = 2 * at + 1;
      if (child >= heap_.size()) return;
      if (child + 1 < heap_.size() && before(heap_[child + 1], heap_[child])) ++child;
      if (!before(heap_[child], heap_[at])) return;
      at = swap(at, child);
    }
  }

 private:
  bool before(std::uint32_t a, std::uint32_t b) const { return std::pair{bound_[a], a} < std::pair{bound_[b], b}; }
  std::uint32_t swap(std::uint32_t a, std::uint32_t b) {
    std::swap(heap_[a], heap_[b]);
    place_[heap_[a]] = a;
    place_[heap_[b]] = b;
    return b;
  }

  std::vector<std::uint64_t> bound_;
  std::vector<std::uint32_t> heap_;
  std::vector<std::uint32_t> place_;
};

}  // namespace dryfly
