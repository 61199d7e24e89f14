// Memory of simulated GPUs, as a NIC's driver has to know it. The GPU's runtime exports these (gpu/nic.cpp); ranks of
// machines without GPUs lack them.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <cstdint>

#include "provider/domain.hpp"
#include "provider/process.hpp"

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

// Once a process: device memory came from a library that has not asked for FI_HMEM.
void warn_of_device_memory(std::uint32_t rank, const void* buffer);

inline void reach(const Session& session, const Domain& domain, const void* buffer) {
  if (dryfly_gpu_reached_by_nic == nullptr) return;
  dryfly_gpu_reached_by_nic(buffer);
  if (!domain.knows_gpus) [[unlikely]]
    warn_of_device_memory(session.channel().rank(), buffer);
}

// What goes into a command of a NIC itself is put there by the processor; libfabric's shm hands a device's memory over.
inline void read_for_command(const Domain& domain, const void* buffer, size_t bytes) {
  if (domain.has_nics() && dryfly_gpu_read_by_processor != nullptr) dryfly_gpu_read_by_processor(buffer, bytes);
}

// As wire::Command::gpu has it.
inline std::uint8_t gpu_of(const void* buffer) {
  if (buffer == nullptr || dryfly_gpu_of == nullptr) return 0;
  return static_cast<std::uint8_t>(dryfly_gpu_of(buffer) + 1);
}

}  // namespace dryfly::provider
