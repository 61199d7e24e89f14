// What this process sees of its node's GPUs by Level Zero, made at the first call: the devices, by what they are told
// apart, and their groups of queues. Models docs/model/gpu.md#devices-of-level-zero.
#pragma once

#include <cstdint>

#include "gpu/level_zero/objects.hpp"
#include "gpu/runtime.hpp"

namespace dryfly::gpu::level_zero {

struct Node {
  Driver driver;
  Context context;  // the default one
  Device tiles[devices_max];
  Device gpus[devices_max];
  Device* shown[devices_max];
  int shown_count;
};
Node& node();

// The device as which the program knows that of an allocation.
Device* shown_of(const Place& place);

inline constexpr std::uint32_t vendor = 0x8086, gpu_max = 0x0bd5;
void fill_uuid(std::uint8_t (&uuid)[16], int gpu, int tile);

inline constexpr std::uint32_t queue_computes = 1;  // ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE
struct QueuesOfGroup {
  std::uint32_t flags;
  std::uint32_t queues;
};
// In the order in which a GPU Max shows them: kernels and copies, and copies alone, twice.
inline constexpr QueuesOfGroup queue_groups[] = {{0x7, 1}, {0x2, 1}, {0x2, 7}};
inline constexpr std::uint32_t queue_group_count = sizeof queue_groups / sizeof *queue_groups;

}  // namespace dryfly::gpu::level_zero
