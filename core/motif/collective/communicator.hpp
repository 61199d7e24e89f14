// The ranks of a skeleton that a collective is over: a row, a column or all of them; ranks first, first + stride, and
// so on, or those of a list. As MPI's communicators, without their state: two collectives on overlapping communicators
// that run at once need different `tags`.
#pragma once

#include <cstdint>
#include <span>

#include "core/motif/job/rank.hpp"
#include "core/unit/check.hpp"

namespace dryfly::motif {

class Communicator {
 public:
  static constexpr std::uint32_t tags_each = 1U << 16;

  // `number` names it apart from others in use at the same time.
  Communicator(std::uint32_t first, std::uint32_t stride, std::uint32_t size, std::uint32_t number)
      : first_(first), stride_(stride), size_(size), tags_(collective_tags + number * tags_each) {
    DRYFLY_CHECK(size > 0 && stride > 0 && number < most);
  }
  // The list has to be in ascending order and to outlive it.
  Communicator(std::span<const std::uint32_t> ranks, std::uint32_t number)
      : list_(ranks), size_(static_cast<std::uint32_t>(ranks.size())), tags_(collective_tags + number * tags_each) {
    DRYFLY_CHECK(size_ > 0 && number < most);
  }

  std::uint32_t size() const { return size_; }
  std::uint32_t rank(std::uint32_t place) const { return list_.empty() ? first_ + place * stride_ : list_[place]; }
  std::uint32_t place_of(const Rank& rank) const {
    if (list_.empty()) return (rank.id() - first_) / stride_;
    std::uint32_t least = 0;
    for (std::uint32_t most_place = size_; least + 1 < most_place;) {
      const std::uint32_t middle = (least + most_place) / 2;
      (list_[middle] <= rank.id() ? least : most_place) = middle;
    }
    return least;
  }
  // A tag of a collective on it; `step` tells its messages apart.
  std::uint32_t tag(std::uint32_t step) const { return tags_ + step % tags_each; }

 private:
  static constexpr std::uint32_t collective_tags = 1U << 30;
  static constexpr std::uint32_t most = 1U << 14;

  std::span<const std::uint32_t> list_;
  std::uint32_t first_ = 0;
  std::uint32_t stride_ = 1;
  std::uint32_t size_ = 1;
  std::uint32_t tags_ = 0;
};

inline Communicator world(const Rank& rank) { return {0, 1, rank.count(), 0}; }

}  // namespace dryfly::motif
