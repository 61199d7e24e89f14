// What is moved through a part of a node that is shared, its memory say, so that all who copy there together get no
// more than it carries.
//
// Models docs/model/on-node.md#memory-of-a-node: time is in intervals, and each has room for what the part moves in it.
// A short copy takes of each interval what its core moves by itself, or its share of what is left where long copies
// (core/memory/long_copies.hpp) want more than that; so no interval ever carries more than it has room for. It is kept
// for the last 34 ms behind the latest copy: of one that lasts longer, what is behind that goes at its core's rate.
//
// All zeros is an empty account, so that it may lie in memory that ranks share. Whoever uses one goes in turn.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace dryfly {

class MovedMemory {
 public:
  static constexpr std::uint64_t interval_ps = std::uint64_t{1} << 22;
  static constexpr std::uint64_t intervals = 8192;

  // Bytes for which an interval has room where the memory moves so many in a second.
  static std::uint64_t room(std::uint64_t bytes_per_s) { return portion(bytes_per_s, interval_ps, 1'000'000'000'000); }

  // A copy that begins then, and by itself moves `bytes` in `alone_ps`: when it is over. `room`: bytes that the part
  // moves in an interval.
  std::uint64_t end_of(std::uint64_t begin_ps, std::uint64_t alone_ps, std::uint64_t bytes, std::uint64_t room) {
    return end_beside(wanted_, begin_ps, alone_ps, bytes, room);
  }
  // Of what comes before all copies.
  std::uint64_t end_of_first(std::uint64_t begin_ps, std::uint64_t alone_ps, std::uint64_t bytes, std::uint64_t room) {
    return end_beside(0, begin_ps, alone_ps, bytes, room);
  }

  // A long copy begins or ends that by itself moves so many bytes in an interval.
  void begins(std::uint64_t bytes) { wanted_ += bytes; }
  void ends(std::uint64_t bytes) { wanted_ -= bytes; }
  // What of that interval nobody has taken.
  std::uint64_t left(std::uint64_t number, std::uint64_t room) { return room - std::min(room, at(number).bytes); }
  void take(std::uint64_t number, std::uint64_t bytes) { at(number).bytes += bytes; }

 private:
  struct Interval {
    std::uint64_t number;
    std::uint64_t bytes;
  };
  static std::uint64_t portion(std::uint64_t whole, std::uint64_t part, std::uint64_t of) {
    return static_cast<std::uint64_t>(static_cast<unsigned __int128>(whole) * part / of);
  }
  Interval& at(std::uint64_t number) {
    Interval& interval = intervals_[number % intervals];
    if (interval.number != number) interval = {number, 0};
    return interval;
  }
  std::uint64_t end_beside(std::uint64_t wanted, std::uint64_t begin_ps, std::uint64_t alone_ps, std::uint64_t bytes,
                           std::uint64_t room) {
    if (bytes == 0 || alone_ps == 0) return begin_ps + alone_ps;
    std::uint64_t at_ps = begin_ps;
    std::uint64_t left = bytes;
    const std::uint64_t last = begin_ps / interval_ps + intervals;
    for (std::uint64_t number = begin_ps / interval_ps; number < last; ++number) {
      const std::uint64_t end_ps = (number + 1) * interval_ps;
      const std::uint64_t alone = portion(bytes, end_ps - at_ps, alone_ps);
      const std::uint64_t others = portion(wanted, end_ps - at_ps, interval_ps);
      const std::uint64_t open = this->left(number, room);
      const bool is_slowed = others != 0 && open < alone + others;
      const std::uint64_t most = is_slowed ? portion(open, alone, alone + others) : std::min(alone, open);
      const std::uint64_t taken = std::min(left, most);
      take(number, taken);
      left -= taken;
      if (left == 0)
        return at_ps + (is_slowed ? portion(end_ps - at_ps, taken, most) : portion(alone_ps, taken, bytes));
      at_ps = end_ps;
    }
    return at_ps + portion(alone_ps, left, bytes);
  }

  std::uint64_t wanted_;  // by the long copies that are under way, in an interval
  std::array<Interval, intervals> intervals_;
};

}  // namespace dryfly
