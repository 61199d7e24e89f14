// Memory of simulated GPUs, as a NIC's driver has to know it. The GPU's runtime exports these (gpu/nic.cpp); ranks of
// machines without GPUs lack them.
#pragma once

#include <stddef.h>

extern "C" {
// Before a NIC moves bytes of it for the first time, what the runtime has under way there comes to its end, and from then
// on what the runtime does there is over when its calls come back (libfabric's cuda_set_sync_memops).
__attribute__((weak)) void dryfly_gpu_reached_by_nic(const void* buffer);
// The processor reads bytes of a device, by a copy of the runtime that it waits for; nothing where they are the host's.
__attribute__((weak)) void dryfly_gpu_read_by_processor(const void* buffer, size_t bytes);
}

namespace dryfly::provider {

inline void reach(const void* buffer) {
  if (dryfly_gpu_reached_by_nic != nullptr) dryfly_gpu_reached_by_nic(buffer);
}

// What goes into a command itself is put there by the processor.
inline void read_for_command(const void* buffer, size_t bytes) {
  if (dryfly_gpu_read_by_processor != nullptr) dryfly_gpu_read_by_processor(buffer, bytes);
}

}  // namespace dryfly::provider
