// At which level something happens next to each of many, and to whom first: a heap of four children, in which each is
// once at most. Equal levels are ordered by number.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace dryfly::flow {

class Levels {
 public:
  struct Entry {
    double level = 0;
    std::uint32_t number = 0;
  };

  // Nobody is in it; accepted are numbers below `count`.
  void clear(std::uint32_t count) {
    heap_.clear();
    place_.assign(count, absent);
  }
  bool empty() const { return heap_.empty(); }
  const Entry& first() const { return heap_.front(); }

  // It happens at that level, if it is not known to happen at this or at a lower one; an infinite one is none.
  void lower(std::uint32_t number, double level) {
    if (level == std::numeric_limits<double>::infinity()) return;
    std::uint32_t at = place_[number];
    if (at == absent) {
      at = static_cast<std::uint32_t>(heap_.size());
      heap_.emplace_back();
    } else if (level >= heap_[at].level) {
      return;
    }
    rise(at, {level, number});
  }
  void take_first() {
    place_[heap_.front().number] = absent;
    const Entry last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
  }
  // To the first it happens at that level, which is no lower than it was.
  void put_off_first(double level) {
    if (level == std::numeric_limits<double>::infinity()) return take_first();
    sink({level, heap_.front().number});
  }

 private:
  static constexpr std::uint32_t absent = ~std::uint32_t{0};
  static constexpr std::uint32_t children = 4;

  // Without branches, for nobody could foretell them.
  static bool before(const Entry& a, const Entry& b) {
    const int is_lower = static_cast<int>(a.level < b.level);
    return (is_lower | (static_cast<int>(a.level == b.level) & static_cast<int>(a.number < b.number))) != 0;
  }
  void put(std::uint32_t at, const Entry& entry) {
    heap_[at] = entry;
    place_[entry.number] = at;
  }
  void rise(std::uint32_t at, const Entry& entry) {
    while (at > 0) {
      const std::uint32_t parent = (at - 1) / children;
      if (!before(entry, heap_[parent])) break;
      put(at, heap_[parent]);
      at = parent;
    }
    put(at, entry);
  }
  // From the root, which is free.
  void sink(const Entry& entry) {
    const auto size = static_cast<std::uint32_t>(heap_.size());
    std::uint32_t at = 0;
    for (std::uint32_t child = 1; child < size; child = children * at + 1) {
      const std::uint32_t end = std::min(child + children, size);
      std::uint32_t least = child;
      for (++child; child < end; ++child) {
        least = before(heap_[child], heap_[least]) ? child : least;
      }
      if (!before(heap_[least], entry)) break;
      put(at, heap_[least]);
      at = least;
    }
    put(at, entry);
  }

  std::vector<Entry> heap_;
  std::vector<std::uint32_t> place_;  // by number
};

}  // namespace dryfly::flow
