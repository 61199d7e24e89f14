// What there is of noise on a machine: plain data, which the conductor leaves to the ranks in shared memory.
// Models docs/model/noise.md.
#pragma once

#include <cstdint>

namespace dryfly {

// One source of detours of the cores (core/noise/noise.hpp): in each of its periods one, or none.
enum class NoiseReach : std::uint32_t { each_core = 0, one_core = 1, all_cores = 2 };
struct NoiseSource {
  std::uint64_t period_ps;
  std::uint64_t least_ps;  // a detour's length is drawn between these two
  std::uint64_t most_ps;   // no more than the period
  std::uint64_t chance;    // that there is one in a period, of noise_certain
  NoiseReach reach;        // what is drawn for itself: each core, one core of each node, or each node
  std::uint32_t regular;   // 1: at the same phase of each period; 0: anywhere in it
  std::uint32_t node;      // only of that node, or any_node
  std::uint32_t reserved;
};
inline constexpr std::uint64_t noise_certain = 1'000'000'000;
inline constexpr std::uint32_t noise_sources_max = 32;
inline constexpr std::uint32_t any_node = 0xffffffffU;

struct NoiseSettings {
  std::uint64_t seed;
  std::uint64_t start_skew_ps;  // a rank leaves MPI_Init up to so much late
  std::uint32_t cores;          // of a node: where something on one of its cores may be
  std::uint32_t source_count;
  NoiseSource sources[noise_sources_max];
};

// What detours have taken from a rank.
struct NoiseTaken {
  std::uint64_t interrupted_ps;  // by which what it did has become longer
  std::uint64_t delayed_ps;      // by which a wait was over late
  std::uint64_t detours;         // that did one of the two
};

}  // namespace dryfly
