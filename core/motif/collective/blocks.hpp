// How a buffer is divided among the places of a communicator: the parts of a collective's data. Places are counted from
// 0; a range of them that goes beyond the last goes on at the first, as rings do.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/unit/unit.hpp"

namespace dryfly::motif {

class Blocks {
 public:
  // Each place has as much.
  static Blocks equal(Bytes each) { return Blocks(each.count, 0, 0); }
  // `size` bytes in whole elements; the first parts have one more where it does not come out even.
  static Blocks split(Bytes size, std::uint32_t parts, Bytes element) {
    const std::uint64_t unit = std::max<std::uint64_t>(element.count, 1);
    const std::uint64_t elements = size.count / unit;
    return Blocks(elements / parts * unit, elements % parts, unit);
  }
  // `size` bytes in parts of one length, rounded up to whole elements: the last ones may have less, or nothing.
  static Blocks rounded_up(Bytes size, std::uint32_t parts, Bytes element) {
    const std::uint64_t unit = std::max<std::uint64_t>(element.count, 1);
    const std::uint64_t elements = size.count / unit;
    Blocks blocks((elements + parts - 1) / parts * unit, 0, 0);
    blocks.end_ = size.count;
    return blocks;
  }

  // Where the part of a place begins; `place` may be the number of places.
  std::uint64_t begin(std::uint32_t place) const {
    return std::min(end_, each_ * place + unit_ * std::min<std::uint64_t>(place, longer_));
  }
  Bytes of(std::uint32_t place) const { return between(place, place + 1); }
  Bytes between(std::uint32_t first, std::uint32_t end) const { return {begin(end) - begin(first)}; }
  // `count` of them from `first` on, of `places`.
  Bytes around(std::uint32_t first, std::uint32_t count, std::uint32_t places) const {
    if (first + count <= places) return between(first, first + count);
    return {between(first, places).count + between(0, first + count - places).count};
  }

 private:
  Blocks(std::uint64_t each, std::uint64_t longer, std::uint64_t unit) : each_(each), longer_(longer), unit_(unit) {}

  std::uint64_t each_;
  std::uint64_t longer_;  // parts that have a unit more
  std::uint64_t unit_;
  std::uint64_t end_ = UINT64_MAX;  // of the data
};

}  // namespace dryfly::motif
