// In whose memory a buffer is that goes by the memory of the node: what libfabric's shm finds out by its calls of the
// GPU runtime, the simulated runtime tells (gpu/holder.cpp).
#pragma once

#include "provider/domain.hpp"

namespace dryfly::provider {

// As wire::Command::gpu has it. cxi's NICs reach all memory alike, and are not told.
std::uint8_t gpu_of(const Domain& domain, const void* buffer);

}  // namespace dryfly::provider
