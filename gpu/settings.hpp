// What a node's GPUs are, as `dryfly run` tells each rank in DRYFLY_GPU, and which of them this process may see by its
// masks. Numbers are those of the machine's file: docs/model/gpu.md.
#pragma once

#include <cstdint>

namespace dryfly::gpu {

inline constexpr int devices_max = 16;

// What one piece of work takes beside its bytes: from its call until a device is at it, which the work before it hides,
// and of the device's own time.
struct Start {
  std::uint64_t latency_ps;
  std::uint64_t step_ps;
};

// What the processor takes to read or write a device's memory itself, through the addresses that PCIe gives it.
struct HostAccess {
  std::uint64_t latency_ps;
  std::uint64_t bytes_per_s;
};

// A word that a stream writes or waits for, of a device: by itself, and behind others of one call.
struct Word {
  std::uint64_t ps;
  std::uint64_t in_batch_ps;
};

// At which the host's memory is taken and made known, and is made known alone, on top of an allocation's time.
struct Pages {
  std::uint64_t pinning_bytes_per_s;
  std::uint64_t registration_bytes_per_s;
};

// Of all copies to and from devices of the node; 0: no less than their links.
struct NodeLinks {
  std::uint64_t in_bytes_per_s;
  std::uint64_t out_bytes_per_s;
};

enum class Api : std::uint8_t { cuda, hip, level_zero };

// How Level Zero shows GPUs of several tiles: each tile as a device; GPUs, whose sub-devices are tiles; or the former,
// which are sub-devices of GPUs nevertheless. To the rest of the runtime a tile is a device.
enum class Hierarchy : std::uint8_t { flat, composite, combined };

struct Settings {
  Api api;
  int devices;  // that this process sees
  int physical[devices_max];
  int tiles;  // of a GPU, each of them a device
  Hierarchy hierarchy;
  int capability;               // CUDA's compute capability, times 10
  int multiprocessors;          // of a device
  std::uint64_t memory_bytes;   // of a device
  std::uint64_t call_ps;        // of the processor, for a call that starts or asks for work
  std::uint64_t lookup_ps;      // of the processor, to tell whose memory a pointer points to
  std::uint64_t query_ps;       // of the processor, for a look at an event
  std::uint64_t short_call_ps;  // of the processor, for words of memory and memory of a pool
  std::uint64_t allocation_ps;  // of the processor, for taking, giving back and making known memory
  Start copy;                   // between a device and another, or the host
  Start local;                  // within a device
  Word word;
  Pages pages;
  NodeLinks node;
  bool host_access;                              // a NIC's driver has such addresses of what it has mapped
  HostAccess load;                               // from a device
  HostAccess store;                              // to a device
  std::uint64_t kernel_ps;                       // of a kernel, from its start to where its end is seen
  std::uint64_t operations_per_s[3];             // of a device in FP64, FP32 and 16 bits; 0: as many as there are
  std::uint64_t gpu_bytes_per_s;                 // of a GPU's link, which its tiles share; 0: no less than theirs
  std::uint64_t link_bytes_per_s;                // between a device and its processor, each way
  std::uint64_t peer_bytes_per_s;                // of a link between two devices, each way
  std::uint64_t tile_bytes_per_s;                // between two tiles of a GPU, each way
  std::uint64_t memory_bytes_per_s;              // of a device's memory, reading and writing together
  std::uint64_t pageable_bytes_per_s;            // what a core copies to and from memory that devices do not know
  std::uint8_t links[devices_max][devices_max];  // that a copy between two devices goes over, by the node's numbers
};

// Values of the variables by which a process chooses its devices, null where they are not set. With HIP, `rocr` comes
// first and the others number what it has left; `cuda` counts where `hip` is not set. With CUDA it alone counts, and
// with Level Zero the last two.
struct Masks {
  const char* cuda;                  // CUDA_VISIBLE_DEVICES
  const char* rocr;                  // ROCR_VISIBLE_DEVICES
  const char* hip;                   // HIP_VISIBLE_DEVICES
  const char* level_zero = nullptr;  // ZE_AFFINITY_MASK
  const char* hierarchy = nullptr;   // ZE_FLAT_DEVICE_HIERARCHY
};

Masks masks_of_environment();

// Between two devices by the node's numbers, each way.
std::uint64_t peer_rate(const Settings& settings, int from, int to);

// `text`: DRYFLY_GPU, words NAME=VALUE; null or without devices: there are none.
Settings read_settings(const char* text, const Masks& masks);

}  // namespace dryfly::gpu
