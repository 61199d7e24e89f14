// The part of a vector that a rank goes on with when vectors are reduced by halves, as Rabenseifner's algorithms do: in
// each step two ranks have the same part, each keeps one half and gets its partner's of it.
#pragma once

#include <cstdint>

#include "core/motif/collective/blocks.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif {

// How parts are divided.
enum class Halves : std::uint8_t {
  of_blocks,    // the vector is a row of blocks, one for each rank that takes part; halves are whole blocks (MPICH)
  of_elements,  // the lower half has half of the elements, rounded down (Open MPI)
};

class Part {
 public:
  Part(Bytes size, std::uint32_t parts, Bytes element, Halves how)
      : blocks_(Blocks::split(size, parts, element)),
        unit_(element.count > 0 ? element.count : 1),
        how_(how),
        end_block_(parts),
        end_(size.count) {}

  Bytes size() const { return {end_ - begin_}; }
  Part lower() const { return with(begin_block_, middle_block(), begin_, middle()); }
  Part upper() const { return with(middle_block(), end_block_, middle(), end_); }

 private:
  std::uint32_t middle_block() const { return (begin_block_ + end_block_) / 2; }
  std::uint64_t middle() const {
    return how_ == Halves::of_blocks ? blocks_.begin(middle_block()) : begin_ + (end_ - begin_) / unit_ / 2 * unit_;
  }
  Part with(std::uint32_t begin_block, std::uint32_t end_block, std::uint64_t begin, std::uint64_t end) const {
    Part part = *this;
    part.begin_block_ = begin_block;
    part.end_block_ = end_block;
    part.begin_ = begin;
    part.end_ = end;
    return part;
  }

  Blocks blocks_;
  std::uint64_t unit_;
  Halves how_;
  std::uint32_t begin_block_ = 0;
  std::uint32_t end_block_;
  std::uint64_t begin_ = 0;
  std::uint64_t end_;
};

}  // namespace dryfly::motif
