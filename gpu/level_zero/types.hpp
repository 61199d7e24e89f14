// What Level Zero's calls pass, as its public specification lays it out (https://oneapi-src.github.io/level-zero-spec):
// in our own names, and of each structure what the calls here read and fill.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dryfly::gpu::level_zero {

enum Code : int {
  success = 0,
  not_ready = 1,
  out_of_host_memory = 0x70000002,
  out_of_device_memory = 0x70000003,
  uninitialized = 0x78000001,
  unsupported_feature = 0x78000003,
  invalid_argument = 0x78000004,
  invalid_null_handle = 0x78000005,
  invalid_null_pointer = 0x78000007,
  invalid_size = 0x78000008,
  unsupported_size = 0x78000009,
  unsupported_alignment = 0x7800000a,
  invalid_synchronization_object = 0x7800000b,
  invalid_list_type = 0x78000019,
};

// In front of everything that a call describes or fills.
struct Base {
  std::uint32_t type;
  void* next;
};

struct DriverProperties : Base {
  std::uint8_t uuid[16];
  std::uint32_t version;
};
struct DriverExtension {
  char name[256];
  std::uint32_t version;
};
struct FlagProperties : Base {  // of IPC, and of a pair of devices
  std::uint32_t flags;
};
struct PeerBandwidth : Base {
  static constexpr std::uint32_t structure = 0x2000a;
  std::uint32_t logical_bandwidth;
  std::uint32_t physical_bandwidth;
  std::uint32_t bandwidth_unit;
  std::uint32_t logical_latency;
  std::uint32_t physical_latency;
  std::uint32_t latency_unit;
};
struct DeviceProperties : Base {
  std::uint32_t kind;
  std::uint32_t vendor;
  std::uint32_t device;
  std::uint32_t flags;
  std::uint32_t tile;
  std::uint32_t clock_mhz;
  std::uint64_t most_allocated;
  std::uint32_t hardware_contexts;
  std::uint32_t priorities;
  std::uint32_t threads_per_unit;
  std::uint32_t lanes;
  std::uint32_t units_per_subslice;
  std::uint32_t subslices_per_slice;
  std::uint32_t slices;
  std::uint64_t timer_resolution;
  std::uint32_t timestamp_bits;
  std::uint32_t kernel_timestamp_bits;
  std::uint8_t uuid[16];
  char name[256];
};
struct MemoryProperties : Base {
  std::uint32_t flags;
  std::uint32_t clock_mhz;
  std::uint32_t bus_bits;
  std::uint64_t bytes;
  char name[256];
};
struct MemoryAccess : Base {
  std::uint32_t host, device, shared_by_one, shared_by_all, of_system;
};
struct ComputeProperties : Base {
  std::uint32_t group_threads;
  std::uint32_t group_x, group_y, group_z;
  std::uint32_t count_x, count_y, count_z;
  std::uint32_t local_bytes;
  std::uint32_t subgroup_kinds;
  std::uint32_t subgroups[8];
};
struct ExternalMemory : Base {
  std::uint32_t imports, exports, image_imports, image_exports;
};
struct QueueGroup : Base {
  std::uint32_t flags;
  std::size_t most_pattern_bytes;
  std::uint32_t queues;
};
struct PciProperties : Base {
  std::uint32_t domain, bus, device, function;
  std::int32_t generation;
  std::int32_t width;
  std::int64_t bytes_per_s;
};
struct QueueDescription : Base {
  std::uint32_t ordinal;
  std::uint32_t index;
  std::uint32_t flags;
  std::uint32_t mode;
  std::uint32_t priority;
};
struct ListDescription : Base {
  std::uint32_t ordinal;
  std::uint32_t flags;
};
struct PoolDescription : Base {
  std::uint32_t flags;
  std::uint32_t count;
};
struct EventDescription : Base {
  std::uint32_t index;
  std::uint32_t signals;
  std::uint32_t waits;
};
struct FenceDescription : Base {
  std::uint32_t flags;
};
struct AllocationProperties : Base {
  std::uint32_t kind;
  std::uint64_t id;
  std::uint64_t page_bytes;
};
struct CopyRegion {
  std::uint32_t x, y, z;
  std::uint32_t width, height, depth;
};
struct IpcHandle {
  char data[64];
};
struct LoaderVersion {
  char component[64];
  std::uint32_t spec;
  int major;
  int minor;
  int patch;
};

}  // namespace dryfly::gpu::level_zero
