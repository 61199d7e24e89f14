// What the provider tells the runtime (provider/device_memory.hpp): that a NIC is about to reach a buffer.
#include "gpu/runtime.hpp"

extern "C" void dryfly_gpu_reached_by_nic(const void* buffer) { dryfly::gpu::Runtime::get().reached_by_nic(buffer); }
