// What the provider tells the runtime (provider/device_memory.hpp).
#include <stddef.h>
#include <stdint.h>

#include "gpu/runtime.hpp"

extern "C" {
int dryfly_gpu_of(const void* buffer) {
  using namespace dryfly::gpu;
  Runtime& runtime = Runtime::get();
  if (runtime.settings().devices == 0) return -1;
  const Place place = runtime.place_of(buffer);
  return place.kind == Kind::device ? runtime.settings().physical[place.device] : -1;
}
uint64_t dryfly_gpu_lookup_ps() { return dryfly::gpu::Runtime::get().settings().lookup_ps; }
void dryfly_gpu_reached_by_nic(const void* buffer) { dryfly::gpu::Runtime::get().reached_by_nic(buffer); }
void dryfly_gpu_read_by_processor(const void* buffer, size_t bytes) {
  dryfly::gpu::Runtime::get().read_by_processor(buffer, bytes);
}
}
