// The ways among which a stream is divided, in the order in which it fills them: the minimal ones, of the links between
// two groups up to four, then detours, by up to six third groups, or by all third switches of a group of 32. Which, and
// in which order, follows from the stream's number; so streams of one pair spread over all there are. Within a group
// six are too few: packets of a few loaded switches go by whatever switches lie idle (docs/model/flows.md#ways).
//
// An algorithm that takes detours only (Ways finds out) spreads each stream evenly over many, whatever their loads.
#pragma once

#include <cstdint>
#include <vector>

#include "core/network/flow/pipes.hpp"
#include "core/network/flow/ways.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly::flow {

// There are many: half as long as with a double, which would say no more of a few parts of `spread`.
struct Crossing {
  std::uint32_t pipe = 0;
  float times = 1;
};

class Fan {
 public:
  static constexpr std::uint32_t most_minimal = 4;
  static constexpr std::uint32_t most_by_groups = 6;
  static constexpr std::uint32_t most_by_switches = 30;
  static constexpr std::uint32_t most_ways = most_minimal + most_by_switches;

  Fan(const Dragonfly& dragonfly, const Ways& ways, const Pipes& pipes);

  // Between NICs of one switch there are none.
  std::uint32_t count(SwitchId from, SwitchId to) const;
  bool is_detour(SwitchId from, SwitchId to, std::uint32_t way) const { return way >= minimal(from, to); }
  // What that way crosses between the switches, for a stream of that number.
  void lay(SwitchId from, SwitchId to, std::uint32_t stream, std::uint32_t way, std::vector<Crossing>& crossings) const;

 private:
  std::uint32_t minimal(SwitchId from, SwitchId to) const;
  std::uint32_t detours(SwitchId from, SwitchId to) const;
  void add_local(SwitchId a, SwitchId b, float times, std::vector<Crossing>& crossings) const;
  void add_global(const GlobalEnd& end, float times, std::vector<Crossing>& crossings) const;
  void lay_detour(SwitchId from, SwitchId to, std::uint64_t number, float times,
                  std::vector<Crossing>& crossings) const;

  const Dragonfly& dragonfly_;
  const Ways& ways_;
  const Pipes& pipes_;
};

}  // namespace dryfly::flow
