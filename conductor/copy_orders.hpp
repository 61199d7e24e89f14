// The copies of payloads that a rank has been told to make, numbered from one. It makes them in their order and counts
// them; those that the conductor makes in its place it never sees, so its count lags behind the numbers by these.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/unit/check.hpp"

namespace dryfly {

class CopyOrders {
 public:
  // The number of a new one.
  std::uint64_t add() { return ++last_; }
  // The conductor has made this one. Numbers come in any order, each once.
  void take_over(std::uint64_t number) {
    DRYFLY_CHECK(number != 0 && number <= last_ && !is_taken_over(number));
    taken_.insert(std::upper_bound(taken_.begin(), taken_.end(), number), number);
  }
  // `counted`: what the rank has counted so far.
  bool is_made(std::uint64_t number, std::uint64_t counted) const {
    return is_taken_over(number) || counted >= count_at(number);
  }
  // What the rank has counted when it has made this one and all before.
  std::uint64_t count_at(std::uint64_t number) const {
    const auto later = std::upper_bound(taken_.begin(), taken_.end(), number);
    return number - static_cast<std::uint64_t>(later - taken_.begin());
  }
  // What it counts when all are made.
  std::uint64_t count_of_all() const { return last_ - taken_.size(); }

 private:
  bool is_taken_over(std::uint64_t number) const { return std::binary_search(taken_.begin(), taken_.end(), number); }

  std::uint64_t last_ = 0;
  std::vector<std::uint64_t> taken_;  // ascending
};

}  // namespace dryfly
