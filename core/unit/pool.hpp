// Records named by small integers that are used again. The index handed out depends only on the order of acquire
// and release, so it is the same in every run; references stay valid while the record is in use.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/unit/check.hpp"
#include "core/unit/stable_vector.hpp"

namespace dryfly {

// `chunk_bits`: it grows by 2^chunk_bits records.
template <class T, unsigned chunk_bits = 6>
class Pool {
 public:
  // The record is as T{} makes it.
  std::uint32_t acquire() {
    if (free_.empty()) return add();
    const std::uint32_t index = take_free();
    items_[index] = T{};
    return index;
  }
  // The record is as its last owner left it.
  std::uint32_t acquire_as_left() { return free_.empty() ? add() : take_free(); }

  void release(std::uint32_t index) {
    DRYFLY_CHECK(free_.size() < items_.size());
    free_.push_back(index);
  }

  // From now on indices are handed out as if the free ones had never been used.
  void restart() { std::sort(free_.begin(), free_.end(), std::greater<>{}); }

  T& operator[](std::uint32_t index) { return items_[index]; }
  const T& operator[](std::uint32_t index) const { return items_[index]; }
  void prefetch(std::uint32_t index) const { items_.prefetch(index); }
  // The record that will be acquired after so many others, if nothing is released before.
  void prefetch_free(std::size_t after) const {
    if (after < free_.size()) items_.prefetch(free_[free_.size() - 1 - after]);
  }
  std::size_t size() const { return items_.size(); }  // ever used
  std::size_t in_use() const { return items_.size() - free_.size(); }

 private:
  std::uint32_t add() {
    DRYFLY_CHECK(items_.size() < UINT32_MAX);
    items_.emplace_back();
    return static_cast<std::uint32_t>(items_.size() - 1);
  }
  std::uint32_t take_free() {
    const std::uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }

  StableVector<T, chunk_bits> items_;
  std::vector<std::uint32_t> free_;
};

}  // namespace dryfly
