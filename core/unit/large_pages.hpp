// Memory for what is large and visited at random: a vector that asks for pages of 2 MiB as soon as it is not small.
// The state of a large machine has thousands of small pages and a processor remembers the places of far fewer, so
// every second visit would begin by looking its page up. The system may give small pages instead; only time differs.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <vector>

namespace dryfly {

template <class Item>
struct LargePages {
  using value_type = Item;

  LargePages() = default;
  template <class Other>
  LargePages(const LargePages<Other>&) {}

  Item* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(Item);
    void* memory = ::operator new(bytes, alignment(bytes));
    // Advice only: that it was not taken is no failure.
    if (is_large(bytes)) static_cast<void>(madvise(memory, bytes, MADV_HUGEPAGE));
    return static_cast<Item*>(memory);
  }
  void deallocate(Item* items, std::size_t count) { ::operator delete(items, alignment(count * sizeof(Item))); }
  bool operator==(const LargePages&) const { return true; }

 private:
  static constexpr std::size_t page = std::size_t{2} << 20;
  static constexpr std::size_t cache_line = 64;
  static bool is_large(std::size_t bytes) { return bytes >= page / 4; }
  static std::align_val_t alignment(std::size_t bytes) { return std::align_val_t{is_large(bytes) ? page : cache_line}; }
};

template <class Item>
using LargeVector = std::vector<Item, LargePages<Item>>;

}  // namespace dryfly
