// What the memory behind an end-point is to the NIC that reads and writes it, and what the NIC can count on.
//
// A memory is near or far: where it hangs on another socket than the NIC, every crossing takes NicSpec::socket_latency,
// one for a command with its payload and for what arrives, two for a fetch that the NIC makes of itself, and one more
// for a fetch that a command asks for. And a memory has a bus, which the NICs of a socket share (HostBus): what they
// send takes its turn on it packet by packet, and what arrives is there when it has carried it. So has the link between
// two sockets, which all payloads that cross it share, each way by itself.
// Every payload of an end-point lies in one memory, its process's.
//
// Where in it a payload lies is told to the NIC's translations only (DmaPages), by names that are no addresses.
#pragma once

#include <cstdint>

#include "core/unit/unit.hpp"

namespace dryfly {

// Where in its node a memory is, and where the NIC that uses it.
struct MemoryPlace {
  std::uint32_t socket = 0;
  std::uint32_t nic_socket = 0;
  static constexpr std::uint32_t with_memory = ~std::uint32_t{0};
  std::uint32_t processor_socket = with_memory;  // where the commands come from
  std::uint8_t nic_gpu = 0;                      // that the NIC hangs off, counted from 1; 0: the processor
  static constexpr std::uint32_t anywhere = ~std::uint32_t{0};
  std::uint32_t domain = anywhere;  // the NUMA domain that it is bound to; anywhere: nobody is bound, it is by its core
  // The core that uses it: which L3 region of the node it is in, and which socket.
  std::uint32_t core_region = 0;
  std::uint32_t core_socket = 0;
  std::uint32_t ranks_in_region = 0;  // whose cores are in that region, itself among them; 0: nobody is bound
};

// Where a payload begins, as the NIC that is to move it names its host's memory (docs/model/registration.md#addresses).
struct DmaPages {
  std::uint64_t page = 0;     // by units of 4 KiB, of all processes that use the NIC
  std::uint8_t shift = 0;     // of the length of its pages in bytes, as a power of two; 0: no translation is needed
  bool kept = true;           // the NIC may keep the translation
  bool by_processor = false;  // which its IOMMU makes

  bool needed() const { return shift != 0; }
  DmaPages behind(std::uint64_t bytes) const { return {page + (bytes >> 12), shift, kept, by_processor}; }
};

// The way from a NIC to a memory, as the NIC's stages use it. Made once for each end-point by whoever knows the node.
struct MemoryPath {
  Duration crossing;           // to the NIC: zero on the same socket
  Duration command;            // the same from the processor that writes commands
  std::uint32_t link_in = 0;   // number of the link between the sockets from NIC to memory; 0: none is shared
  std::uint32_t link_out = 0;  // and from memory to NIC
  static constexpr std::uint32_t no_lane = ~std::uint32_t{0};
  std::uint32_t lane = no_lane;  // of its NIC, on the bus of the NIC's socket; none: it has all it wants
  bool plain = true;             // the NIC has all it wants: neither of the two changes any instant
};

}  // namespace dryfly
