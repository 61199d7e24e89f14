// Arithmetic of instants and durations, in picoseconds.
#pragma once

#include <cstdint>

namespace dryfly::gpu {

inline std::uint64_t later(std::uint64_t one, std::uint64_t other) { return one > other ? one : other; }

// What bytes, or operations, take at that many a second; 0: no time.
inline std::uint64_t time_ps(std::uint64_t amount, std::uint64_t per_s) {
  constexpr std::uint64_t ps_per_s = 1'000'000'000'000;
  if (per_s == 0) return 0;
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(amount) * ps_per_s + per_s - 1) / per_s);
}

}  // namespace dryfly::gpu
