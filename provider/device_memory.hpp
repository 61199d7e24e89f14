// Memory of simulated GPUs, as a NIC's driver has to know it: before the NIC moves bytes of it for the first time, what
// the GPU's runtime has under way there comes to its end, and from then on what the runtime does there is over when its
// calls come back (libfabric's cuda_set_sync_memops). The runtime exports this (gpu/nic.cpp); ranks of machines without
// GPUs lack it.
#pragma once

extern "C" __attribute__((weak)) void dryfly_gpu_reached_by_nic(const void* buffer);

namespace dryfly::provider {

inline void reach(const void* buffer) {
  if (dryfly_gpu_reached_by_nic != nullptr) dryfly_gpu_reached_by_nic(buffer);
}

}  // namespace dryfly::provider
