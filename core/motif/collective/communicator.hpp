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
  static constexpr std::uint32_t numbers = 1U << 12;  // the rest are for parts of them

  // `number`, below `numbers`, names it apart from others in use at the same time.
  Communicator(std::uint32_t first, std::uint32_t stride, std::uint32_t size, std::uint32_t number)
      : first_(first), stride_(stride), size_(size), tags_(collective_tags + number * tags_each) {
    DRYFLY_CHECK(size > 0 && stride > 0 && number < numbers);
  }
  // The list has to be in ascending order and to outlive it.
  Communicator(std::span<const std::uint32_t> ranks, std::uint32_t number)
      : list_(ranks), size_(static_cast<std::uint32_t>(ranks.size())), tags_(collective_tags + number * tags_each) {
    DRYFLY_CHECK(size_ > 0 && number < numbers);
  }
  // A list in any order, and the place of each rank of the job; both have to outlive it.
  Communicator(std::span<const std::uint32_t> ranks, std::span<const std::uint32_t> places, std::uint32_t number)
      : Communicator(ranks, number) {
    places_ = places.data();
  }

  std::uint32_t size() const { return size_; }
  std::uint32_t rank(std::uint32_t place) const { return list_.empty() ? first_ + place * stride_ : list_[place]; }
  std::uint32_t place_of(const Rank& rank) const {
    if (places_ != nullptr) return places_[rank.id()];
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

  // Places counted from a root.
  std::uint32_t relative(std::uint32_t place, std::uint32_t root) const {
    return place >= root ? place - root : place + size_ - root;
  }
  std::uint32_t relative_rank(std::uint32_t relative, std::uint32_t root) const {
    return rank(relative < size_ - root ? relative + root : relative - (size_ - root));
  }

  // How many places of it are on each node, where each has `per_node` ranks, one behind the other; 1 where that is not
  // the same number everywhere.
  std::uint32_t on_a_node(std::uint32_t per_node) const {
    if (!list_.empty() || stride_ >= per_node || per_node % stride_ != 0) return 1;
    const std::uint32_t places = per_node / stride_;
    if (first_ % per_node < stride_ && size_ % places == 0) return places;
    return first_ / per_node == rank(size_ - 1) / per_node ? size_ : 1;
  }
  // Every stride-th place from `first` on, of one that is no list. The parts of a communicator may be in use at once if
  // they have different `level`s or no rank in common; a part's parts as well, if theirs are others again.
  enum class Level : std::uint32_t { nodes = 1, leaders = 2 };
  Communicator part(std::uint32_t first, std::uint32_t stride, std::uint32_t size, Level level) const {
    DRYFLY_CHECK(list_.empty() && size > 0 && first + (size - 1) * stride < size_);
    Communicator part = *this;
    part.first_ = rank(first);
    part.stride_ = stride_ * stride;
    part.size_ = size;
    part.tags_ = tags_ + static_cast<std::uint32_t>(level) * most / 4 * tags_each;
    return part;
  }

 private:
  static constexpr std::uint32_t collective_tags = 1U << 30;
  static constexpr std::uint32_t most = 1U << 14;  // the upper three quarters of the numbers are for parts

  std::span<const std::uint32_t> list_;
  const std::uint32_t* places_ = nullptr;
  std::uint32_t first_ = 0;
  std::uint32_t stride_ = 1;
  std::uint32_t size_ = 1;
  std::uint32_t tags_ = 0;
};

inline Communicator world(const Rank& rank) { return {0, 1, rank.count(), 0}; }

}  // namespace dryfly::motif
