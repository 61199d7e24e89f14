// What the provider (provider/device_memory.hpp) and the wrappers of MPI (preload/mpi/gpu_buffers.hpp) tell the runtime
// and ask of it.
#include <stddef.h>
#include <stdint.h>

#include "gpu/runtime.hpp"
#include "gpu/streams.hpp"

extern "C" {
// The program calls MPI: what it has copied and filled without a stream is there.
void dryfly_gpu_before_mpi() { dryfly::gpu::Streams::get().before_mpi(); }
// As a copy of Open MPI's component, which waits for it; 0: done.
int dryfly_gpu_copy(void* to, const void* from, size_t bytes) {
  using namespace dryfly::gpu;
  return Streams::get().copy(to, from, bytes, nullptr, Returning::when_done) == Result::done ? 0 : 1;
}
int dryfly_gpu_of(const void* buffer) {
  using namespace dryfly::gpu;
  Runtime& runtime = Runtime::get();
  if (runtime.settings().devices == 0) return -1;
  const Place place = runtime.place_of(buffer);
  return place.kind == Kind::device ? runtime.settings().physical[place.device] : -1;
}
int dryfly_gpu_is_whole(const void* buffer, size_t bytes) {
  using namespace dryfly::gpu;
  Runtime& runtime = Runtime::get();
  return runtime.settings().devices == 0 || runtime.is_whole(buffer, bytes) ? 1 : 0;
}
uint64_t dryfly_gpu_lookup_ps() { return dryfly::gpu::Runtime::get().settings().lookup_ps; }
int dryfly_gpu_has_host_access() { return dryfly::gpu::Runtime::get().settings().host_access ? 1 : 0; }
void dryfly_gpu_reached_by_nic(const void* buffer, int synchronous) {
  dryfly::gpu::Runtime::get().reached_by_nic(buffer, synchronous != 0);
}
void dryfly_gpu_copied_by_runtime(const void* buffer, size_t bytes, int to_device, int pageable) {
  using namespace dryfly::gpu;
  Runtime::get().copied_by_runtime(buffer, bytes, to_device != 0 ? Way::in : Way::out, pageable != 0);
}
void dryfly_gpu_copied_by_processor(const void* buffer, size_t bytes, int to_device) {
  using namespace dryfly::gpu;
  Runtime::get().copied_by_processor(buffer, bytes, to_device != 0 ? Way::in : Way::out);
}
}
