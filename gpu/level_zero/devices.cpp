// Level Zero's devices: which there are, and what it tells of them.
#include <stdio.h>
#include <time.h>

#include "gpu/level_zero/calls.hpp"
#include "gpu/level_zero/node.hpp"
#include "gpu/pci.hpp"

namespace dryfly::gpu::level_zero {

namespace {

int gpu_of(const Device& device) { return settings().physical[device.first] / settings().tiles; }

}  // namespace

ZE_EXPORT int zeDeviceGet(Driver* driver, std::uint32_t* count, Device** to) {
  if (!is(driver)) return invalid_null_handle;
  return list_out(count, to, static_cast<std::uint32_t>(node().shown_count),
                  [](Device*& each, std::uint32_t i) { each = node().shown[i]; });
}
ZE_EXPORT int zeDeviceGetSubDevices(Device* device, std::uint32_t* count, Device** to) {
  if (!is(device)) return invalid_null_handle;
  return list_out(count, to, static_cast<std::uint32_t>(device->tile_count),
                  [device](Device*& each, std::uint32_t i) { each = device->tiles[i]; });
}
ZE_EXPORT int zeDeviceGetRootDevice(Device* device, Device** to) {
  if (!is(device)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  *to = device->root;
  return success;
}
ZE_EXPORT int zeDeviceGetProperties(Device* device, DeviceProperties* to) {
  constexpr std::uint32_t gpu = 1, subdevice = 0x2, ecc = 0x4;
  constexpr std::uint32_t ns_structure = 0x3;  // else the resolution is cycles a second
  if (!is(device)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  const int tile = settings().physical[device->first] % settings().tiles;
  clear(*to);
  to->kind = gpu;
  to->vendor = vendor;
  to->device = gpu_max;
  to->flags = ecc | (device->is_tile ? subdevice : 0);
  to->tile = device->is_tile ? static_cast<std::uint32_t>(tile) : 0;
  to->clock_mhz = 1600;
  to->most_allocated = settings().memory_bytes;
  to->hardware_contexts = 65536;
  to->threads_per_unit = 8;
  to->lanes = 16;
  to->units_per_subslice = 8;
  to->subslices_per_slice = 56;
  to->slices = static_cast<std::uint32_t>(device->count);
  to->timer_resolution = to->type == ns_structure ? 1 : 1'000'000'000;
  to->timestamp_bits = 64;
  to->kernel_timestamp_bits = 64;
  fill_uuid(to->uuid, gpu_of(*device), device->count > 1 ? 0 : tile + 1);
  snprintf(to->name, sizeof to->name, "simulated GPU");
  return success;
}
ZE_EXPORT int zeDeviceGetComputeProperties(Device* device, ComputeProperties* to) {
  if (!is(device)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  clear(*to);
  to->group_threads = to->group_x = to->group_y = to->group_z = 1024;
  to->count_x = to->count_y = to->count_z = ~0u;
  to->local_bytes = 128 << 10;
  to->subgroup_kinds = 2;
  to->subgroups[0] = 16;
  to->subgroups[1] = 32;
  return success;
}
ZE_EXPORT int zeDeviceGetMemoryProperties(Device* device, std::uint32_t* count, MemoryProperties* to) {
  if (!is(device)) return invalid_null_handle;
  return list_out(count, to, 1, [device](MemoryProperties& each, std::uint32_t) {
    clear(each);
    each.clock_mhz = 3200;
    each.bus_bits = 64;
    each.bytes = settings().memory_bytes * static_cast<std::uint64_t>(device->count);
    snprintf(each.name, sizeof each.name, "HBM");
  });
}
ZE_EXPORT int zeDeviceGetMemoryAccessProperties(Device* device, MemoryAccess* to) {
  constexpr std::uint32_t all = 0xf, read_and_write = 1;
  if (!is(device)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  to->host = to->device = to->shared_by_one = all;
  to->shared_by_all = read_and_write;
  to->of_system = 0;
  return success;
}
ZE_EXPORT int zeDeviceGetCacheProperties(Device* device, std::uint32_t* count, Base* to) {
  if (!is(device)) return invalid_null_handle;
  return list_out(count, to, 0, [](Base&, std::uint32_t) {});
}
ZE_EXPORT int zeDeviceGetExternalMemoryProperties(Device* device, ExternalMemory* to) {
  if (!is(device)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  clear(*to);
  return success;
}
ZE_EXPORT int zeDeviceGetCommandQueueGroupProperties(Device* device, std::uint32_t* count, QueueGroup* to) {
  if (!is(device)) return invalid_null_handle;
  return list_out(count, to, queue_group_count, [](QueueGroup& each, std::uint32_t i) {
    each.flags = queue_groups[i].flags;
    each.most_pattern_bytes = Pattern::most;
    each.queues = queue_groups[i].queues;
  });
}
ZE_EXPORT int zeDevicePciGetPropertiesExt(Device* device, PciProperties* to) {
  if (!is(device)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  clear(*to);
  to->domain = pci_domain;
  to->bus = static_cast<std::uint32_t>(pci_bus(settings(), device->first));
  to->generation = 5;
  to->width = 16;
  to->bytes_per_s = static_cast<std::int64_t>(settings().link_bytes_per_s);
  return success;
}
ZE_EXPORT int zeDeviceGetP2PProperties(Device* device, Device* peer, FlagProperties* to) {
  constexpr std::uint32_t access = 1, atomics = 2, bytes_per_ns = 1;
  if (!is(device) || !is(peer)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  to->flags = access | atomics;
  for (auto* next = static_cast<Base*>(to->next); next != nullptr; next = static_cast<Base*>(next->next)) {
    if (next->type != PeerBandwidth::structure) continue;
    auto& bandwidth = *static_cast<PeerBandwidth*>(next);
    clear(bandwidth);
    const int from = settings().physical[device->first], at = settings().physical[peer->first];
    const std::uint64_t rate = from == at ? settings().memory_bytes_per_s : peer_rate(settings(), from, at);
    bandwidth.logical_bandwidth = bandwidth.physical_bandwidth = static_cast<std::uint32_t>(rate / 1'000'000'000);
    bandwidth.bandwidth_unit = bytes_per_ns;
  }
  return success;
}
ZE_EXPORT int zeDeviceCanAccessPeer(Device* device, Device* peer, std::uint8_t* to) {
  if (!is(device) || !is(peer)) return invalid_null_handle;
  if (to == nullptr) return invalid_null_pointer;
  *to = 1;
  return success;
}
ZE_EXPORT int zeDeviceGetStatus(Device* device) { return is(device) ? success : invalid_null_handle; }
ZE_EXPORT int zeDeviceGetGlobalTimestamps(Device* device, std::uint64_t* host, std::uint64_t* at) {
  if (!is(device)) return invalid_null_handle;
  if (host == nullptr || at == nullptr) return invalid_null_pointer;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  *host = static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
  *at = *host;
  return success;
}

}  // namespace dryfly::gpu::level_zero
