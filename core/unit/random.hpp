// Counter-based random numbers: draw number `counter` of the stream (seed, component, purpose) is a pure function
// of these four, so adding a component or a draw elsewhere shifts nobody's numbers, and no state needs saving.
// The mixing function is the finaliser of SplitMix64 (Steele, Lea, Flood 2014), applied once per word.
#pragma once

#include <cstdint>

namespace dryfly {

constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

enum class Purpose : std::uint32_t { packet, tie_break, placement, workload, test, replay, flap, noise, back_off };

class RandomStream {
 public:
  constexpr RandomStream(std::uint64_t seed, std::uint64_t component, Purpose purpose)
      : key_(mix(mix(mix(seed) ^ component) ^ static_cast<std::uint64_t>(purpose))) {}

  constexpr std::uint64_t draw(std::uint64_t counter) const { return mix(key_ ^ mix(counter)); }

  // Uniform in [0, bound) by multiplication; the bias is below bound / 2^64.
  constexpr std::uint32_t below(std::uint64_t counter, std::uint32_t bound) const {
    return static_cast<std::uint32_t>(within(counter, bound));
  }
  constexpr std::uint64_t within(std::uint64_t counter, std::uint64_t bound) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<Wide>(draw(counter)) * bound) >> 64);
  }

 private:
  std::uint64_t key_;
};

}  // namespace dryfly
