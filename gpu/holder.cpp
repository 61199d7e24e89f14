// The provider's question in whose memory a buffer is (provider/gpu_memory.cpp).
#include "gpu/runtime.hpp"

// The number on the node of the GPU whose memory it is, whatever a mask makes of that number; -1 of all other memory,
// managed memory's too, which libfabric moves as the host's.
extern "C" __attribute__((visibility("default"))) int dryfly_gpu_of(const void* buffer) {
  using namespace dryfly::gpu;
  Runtime& runtime = Runtime::get();
  if (runtime.settings().devices == 0) return -1;
  const Place place = runtime.place_of(buffer);
  return place.kind == Kind::device ? runtime.settings().physical[place.device] : -1;
}
