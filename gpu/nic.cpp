// What the provider tells the runtime (provider/device_memory.hpp).
#include <stddef.h>

#include "gpu/runtime.hpp"

extern "C" {
void dryfly_gpu_reached_by_nic(const void* buffer) { dryfly::gpu::Runtime::get().reached_by_nic(buffer); }
void dryfly_gpu_read_by_processor(const void* buffer, size_t bytes) {
  dryfly::gpu::Runtime::get().read_by_processor(buffer, bytes);
}
}
