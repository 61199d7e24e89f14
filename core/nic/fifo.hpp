// A first-in first-out queue in one ring that grows by doubling. It costs nothing until it is used: a run has
// thousands of end-points, most of which never have anything under way (std::deque takes 576 bytes when empty).
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/unit/check.hpp"

namespace dryfly::nic {

template <class T>
class Fifo {
 public:
  bool empty() const { return count_ == 0; }

  void push(T item) {
    if (count_ == ring_.size()) grow();
    ring_[(first_ + count_++) & (ring_.size() - 1)] = std::move(item);
  }

  // The item that comes after so many others, or null.
  const T* ahead(std::size_t others) const {
    return others < count_ ? &ring_[(first_ + others) & (ring_.size() - 1)] : nullptr;
  }

  T pop() {
    DRYFLY_CHECK(count_ > 0);
    T item = std::move(ring_[first_]);
    first_ = (first_ + 1) & (ring_.size() - 1);
    --count_;
    return item;
  }

 private:
  void grow() {
    std::vector<T> larger(ring_.empty() ? 8 : ring_.size() * 2);
    for (std::size_t i = 0; i < count_; ++i) larger[i] = std::move(ring_[(first_ + i) & (ring_.size() - 1)]);
    ring_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> ring_;  // its size is a power of two, or zero
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace dryfly::nic
