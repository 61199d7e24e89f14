// Memory of simulated GPUs, as a NIC's driver has to know it. The GPU's runtime exports these (gpu/nic.cpp); ranks of
// machines without GPUs lack them.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <cstdint>

#include "provider/domain.hpp"

extern "C" {
// Before a NIC moves bytes of it for the first time, what the runtime has under way there comes to its end, and from
// then on what the runtime does there is over when its calls come back (libfabric's cuda_set_sync_memops).
__attribute__((weak)) void dryfly_gpu_reached_by_nic(const void* buffer);
// The processor reads bytes of a device, by a copy of the runtime that it waits for; nothing where they are the host's.
__attribute__((weak)) void dryfly_gpu_read_by_processor(const void* buffer, size_t bytes);
// What it takes to ask the runtime about a pointer.
__attribute__((weak)) uint64_t dryfly_gpu_lookup_ps();
// The number on the node of the GPU whose memory it is, whatever a mask makes of that number; -1 of all other memory,
// managed memory's too, which libfabric moves as the host's.
__attribute__((weak)) int dryfly_gpu_of(const void* buffer);
}

namespace dryfly::provider {

inline void reach(const void* buffer) {
  if (dryfly_gpu_reached_by_nic != nullptr) dryfly_gpu_reached_by_nic(buffer);
}

// What goes into a command of a NIC itself is put there by the processor; libfabric's shm hands a device's memory over.
inline void read_for_command(const Domain& domain, const void* buffer, size_t bytes) {
  if (domain.has_nics() && dryfly_gpu_read_by_processor != nullptr) dryfly_gpu_read_by_processor(buffer, bytes);
}

// As wire::Command::gpu has it, where messages go by the memory of a node. cxi's NICs reach all memory alike, and are
// not told.
inline std::uint8_t gpu_of(const Domain& domain, const void* buffer) {
  if (domain.has_nics() || buffer == nullptr || dryfly_gpu_of == nullptr) return 0;
  return static_cast<std::uint8_t>(dryfly_gpu_of(buffer) + 1);
}

}  // namespace dryfly::provider
