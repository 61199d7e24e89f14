// Pools of memory as CUDA's two libraries have them, and HIP as well.
#pragma once

#include <cstddef>

#include "gpu/cuda_codes.hpp"
#include "gpu/runtime.hpp"

namespace dryfly::gpu::cuda {

// cudaMemPoolProps and CUmemPoolProps.
struct PoolProperties {
  int allocation_type;
  int handle_types;
  int location_type;
  int location;
  void* security;
  std::size_t most;
  unsigned char rest[56];
};
static_assert(sizeof(PoolProperties) == 88);

// The device's own, or the one that it takes from now.
inline int pool_of(MemoryPool** pool, int device, bool standard) {
  if (pool == nullptr) return invalid_value;
  Runtime& runtime = Runtime::get();
  if (device < 0 || device >= runtime.settings().devices) return invalid_device;
  *pool = runtime.pool(device, standard);
  return success;
}

// Of pinned memory of a device, as all pools are; other processes cannot open it.
inline int create_pool(MemoryPool** pool, const PoolProperties* properties) {
  constexpr int pinned = 1, of_device = 1;
  if (pool == nullptr || properties == nullptr) return invalid_value;
  Runtime& runtime = Runtime::get();
  if (properties->allocation_type != pinned || properties->location_type != of_device || properties->location < 0 ||
      properties->location >= runtime.settings().devices) {
    return invalid_value;
  }
  if (properties->handle_types != 0) return not_supported;
  return code_of(runtime.create_pool(properties->location, *pool));
}

}  // namespace dryfly::gpu::cuda
