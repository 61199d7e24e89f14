// Which ranks take part in an algorithm for powers of two: of the first 2 * `further` places one of each pair drops
// out, having given its data to the other, and those that stay are numbered in their order.
#pragma once

#include <bit>
#include <cstdint>

#include "core/motif/collective/communicator.hpp"

namespace dryfly::motif {

class Fold {
 public:
  static constexpr std::uint32_t out = ~std::uint32_t{0};

  Fold(std::uint32_t places, bool odd_stay)
      : half_(std::bit_floor(places)), further_(places - half_), odd_stay_(odd_stay) {}

  std::uint32_t numbers() const { return half_; }
  bool paired(std::uint32_t place) const { return place < 2 * further_; }
  std::uint32_t number(std::uint32_t place) const {
    if (!paired(place)) return place - further_;
    return (place % 2 == 1) == odd_stay_ ? place / 2 : out;
  }
  std::uint32_t place(std::uint32_t number) const {
    return number < further_ ? 2 * number + (odd_stay_ ? 1 : 0) : number + further_;
  }
  // The first place of those that a number stands for; `number` may be one beyond the last.
  std::uint32_t first_place(std::uint32_t number) const { return number < further_ ? 2 * number : number + further_; }

 private:
  std::uint32_t half_;
  std::uint32_t further_;
  bool odd_stay_;
};

}  // namespace dryfly::motif
