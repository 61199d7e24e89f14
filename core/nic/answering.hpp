// How a NIC answers Gets: what is longer than a packet one after the other, with a gap behind each.
//
// Models docs/model/nic-protocols.md#answers-to-gets.
#pragma once

#include <algorithm>

#include "core/nic/counters.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::nic {

struct Answering {
  static constexpr Bytes turn{std::uint64_t{64} << 10};  // when so much of an answer has left, the next one begins

  Duration gap{};  // 0: answers are not held up by each other
  Rate rate{};     // at which they leave; used with the gap
  Framing framing{};

  // When a NIC that can begin its next answer at `next` begins one of that size; moves `next`.
  Instant begin(Bytes size, Instant now, Instant& next) const {
    if (gap == Duration{} || size <= framing.payload_max) return now;
    const Instant begin = std::max(now, next);
    next = begin + transmission_time(framing.on_link(std::min(size, turn)), rate) + gap;
    return begin;
  }
};

}  // namespace dryfly::nic
