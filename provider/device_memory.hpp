// Memory of simulated GPUs, as a NIC's driver has to know it. The GPU's runtime exports these (gpu/nic.cpp); ranks of
// machines without GPUs lack them. How a few bytes of it are copied: docs/model/gpu.md#what-the-provider-copies.
#pragma once

#include <rdma/fi_domain.h>
#include <stddef.h>
#include <stdint.h>

#include <cstdint>

#include "provider/domain.hpp"
#include "provider/process.hpp"

extern "C" {
// Before a NIC moves bytes of it for the first time, what the runtime has under way there comes to its end, and from
// then on what the runtime does there is over when its calls come back (libfabric's cuda_set_sync_memops). Not
// `synchronous`: what is due there is done, and nothing is waited for.
__attribute__((weak)) void dryfly_gpu_reached_by_nic(const void* buffer, int synchronous);
// A copy of the runtime that the processor waits for; nothing where the buffer is the host's. `pageable`: between it
// and memory of the host that the runtime does not know.
__attribute__((weak)) void dryfly_gpu_copied_by_runtime(const void* buffer, size_t bytes, int to_device, int pageable);
// The processor's own loads or stores.
__attribute__((weak)) void dryfly_gpu_copied_by_processor(const void* buffer, size_t bytes, int to_device);
// Whether the machine lets the processor have devices' memory so.
__attribute__((weak)) int dryfly_gpu_has_host_access();
// What it takes to ask the runtime about a pointer.
__attribute__((weak)) uint64_t dryfly_gpu_lookup_ps();
// The number on the node of the GPU whose memory it is, whatever a mask makes of that number; -1 of all other memory,
// managed memory's too, which libfabric moves as the host's.
__attribute__((weak)) int dryfly_gpu_of(const void* buffer);
// Whether bytes in a device's addresses are of one allocation; 1 of all other memory.
__attribute__((weak)) int dryfly_gpu_is_whole(const void* buffer, size_t bytes);
}

namespace dryfly::provider {

struct Endpoint;

// How bytes go between a device and memory of the provider's, as cxip_copy_to_md and cxip_copy_from_md choose.
enum class DeviceCopy : std::uint8_t { none, by_runtime, by_processor };

// The memory of the GPU runtime that the machine's nodes have (gpu/settings.hpp); the host's where they have none.
fi_hmem_iface device_interface();
// Whether libfabric has found that runtime: there is one, and FI_HMEM does not leave it out.
bool knows_devices(const Environment& environment);
// As cuda_is_gdrcopy_enabled.
bool has_gdrcopy(const Environment& environment);
// Whether what libfabric maps of a device's memory can be read and written by the processor.
bool maps_for_processor(const Environment& environment);

// Once a process: device memory came from a library that has not asked for FI_HMEM, or FI_HMEM leaves its runtime out.
void warn_of_device_memory(const Session& session, int gpu);

// Once a process: bytes that no allocation of a device holds.
void warn_of_range(const Session& session, const void* buffer, std::size_t bytes);

inline void reach(const Session& session, const Domain& domain, const void* buffer, std::size_t bytes) {
  if (dryfly_gpu_reached_by_nic == nullptr) return;
  if (bytes != 0 && dryfly_gpu_is_whole(buffer, bytes) == 0) [[unlikely]]
    warn_of_range(session, buffer, bytes);
  dryfly_gpu_reached_by_nic(buffer, session.state().environment.device_memory.unsynchronised ? 0 : 1);
  if (domain.knows_gpus) return;
  if (const int gpu = dryfly_gpu_of(buffer); gpu >= 0) [[unlikely]]
    warn_of_device_memory(session, gpu);
}

// As wire::Command::gpu has it.
inline std::uint8_t gpu_of(const void* buffer) {
  if (buffer == nullptr || dryfly_gpu_of == nullptr) return 0;
  return static_cast<std::uint8_t>(dryfly_gpu_of(buffer) + 1);
}

// What is known of a device's memory is used again only after a look at whether it still holds.
inline void check_mapping(const Session& session, const Domain& domain, bool of_device) {
  if (of_device) session.channel().charge(domain.lookup_ps);
}

// The end-point may not have the runtime copy, and the buffer is a device's that the processor cannot reach.
bool refuses(const Endpoint& endpoint, const void* buffer);
// The provider has to have bytes of the buffer itself, for a command or to keep them.
void copy_from_device(const Session& session, const Endpoint& endpoint, const void* buffer, std::size_t bytes);
// A receive's buffer, by its command: where it is, and whether the provider brings there what lies in its own.
void name_device_buffer(const Endpoint& endpoint, const void* buffer, wire::Command& command);
inline void name_buffer(const Endpoint& endpoint, const void* buffer, wire::Command& command) {
  if (dryfly_gpu_of != nullptr) [[unlikely]]
    name_device_buffer(endpoint, buffer, command);
}
// Who brings so many bytes there, and that it does.
DeviceCopy way_to_device(const Environment& environment, const Endpoint& endpoint, std::size_t bytes);
void copy_to_device(const Environment& environment, DeviceCopy way, const void* buffer, std::size_t bytes);

}  // namespace dryfly::provider
