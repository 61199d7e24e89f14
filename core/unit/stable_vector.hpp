// A vector whose items stay where they are while it grows: it takes a chunk of 2^chunk_bits items at a time, on large
// pages if the chunk is large. Items are only ever added.
#pragma once

#include <cstddef>
#include <vector>

#include "core/unit/fetch.hpp"
#include "core/unit/large_pages.hpp"

namespace dryfly {

template <class Item, unsigned chunk_bits>
class StableVector {
 public:
  void emplace_back() {
    if ((size_ & mask) == 0) chunks_.emplace_back().reserve(mask + 1);
    chunks_.back().emplace_back();
    ++size_;
  }
  Item& operator[](std::size_t index) { return chunks_[index >> chunk_bits].data()[index & mask]; }
  const Item& operator[](std::size_t index) const { return chunks_[index >> chunk_bits].data()[index & mask]; }
  std::size_t size() const { return size_; }
  // Into the cache, all of it.
  void prefetch(std::size_t index) const {
    if (index < size_) fetch_lines(&(*this)[index], sizeof(Item));
  }

 private:
  static constexpr std::size_t mask = (std::size_t{1} << chunk_bits) - 1;

  std::vector<LargeVector<Item>> chunks_;
  std::size_t size_ = 0;
};

}  // namespace dryfly
