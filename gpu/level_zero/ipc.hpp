// Handles by which processes of a node show each other memory with Level Zero: descriptors of small files that say
// where it is.
#pragma once

#include <cstdint>

namespace dryfly::gpu::level_zero {

// The allocation was given back: its descriptor is closed.
void forget_descriptor(std::uint64_t allocation);

}  // namespace dryfly::gpu::level_zero
