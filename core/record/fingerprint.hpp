// The fingerprint of a run: a running hash over every delivered message, in the order of delivery. Equal runs have
// equal fingerprints; a change of one instant by one picosecond, of one size, source, target, or of the order gives
// another one (two runs that differ agree by chance once in 2^128). It is no defence against forgery.
#pragma once

#include <cstdint>
#include <string>

#include "core/unit/random.hpp"
#include "core/unit/unit.hpp"

namespace dryfly {

class Fingerprint {
 public:
  // Source and target are ids of the same kind: ranks, end-points or NICs.
  template <class Tag>
  void add(Instant at, Id<Tag> source, Id<Tag> target, Bytes size) {
    add_word(at.ps);
    add_word(static_cast<std::uint64_t>(source.value) << 32 | target.value);
    add_word(size.count);
  }

  std::string text() const;  // 32 hexadecimal digits

 private:
  // Two chains of the same words from different beginnings; the second one sees them rotated, so that no pair of
  // words that happens to collide in one collides in the other for the same reason.
  void add_word(std::uint64_t word) {
    first_ = mix(first_ ^ word);
    second_ = mix(second_ ^ (word << 32 | word >> 32)) + word;
  }

  std::uint64_t first_ = 0x243f6a8885a308d3U;  // digits of pi
  std::uint64_t second_ = 0x13198a2e03707344U;
};

}  // namespace dryfly
