// The way between a NIC and the memory of its end-points, as far as it differs from end-point to end-point: the NICs of
// a socket share what its PCIe gets from and to memory, and a NIC on another socket is further away.
//
// Models docs/model/host-costs.md#pcie-of-a-socket: the NICs of a socket move less together than their links carry.
// Each of the n NICs at work gets an n-th of the shared rate. What a NIC fetches for a Get (rendezvous payloads,
// reads) it fetches one after the other at that rate, if that is less than its link, whatever their traffic classes;
// what arrives is there when its share has carried it. A way across sockets takes a latency each time: once for a
// command with its payload and for what arrives, three times where a payload is fetched for a command (doorbell,
// request, data), twice where it is for a Get. Left out: puts and eager messages do not wait for the bus; the rate
// of the link between sockets; completions, which take the latency of the near NIC.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/contract/memory.hpp"
#include "core/nic/fifo.hpp"
#include "core/nic/nic.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::nic {

class HostPaths {
 public:
  explicit HostPaths(const NicSpec& spec) : spec_(spec) {}

  // Of an end-point.
  MemoryPath place(NicId nic, NodeId node, const MemoryPlace& host);
  bool shares_bus() const { return spec_.pcie_rate.bytes_per_s != 0; }

  // A fetch waits for a slot of the bus. True: the bus is free for the next one, which is to be taken.
  bool queue(std::uint32_t lane, const Transfer& fetch, Instant now);
  bool has_slot(std::uint32_t lane, Instant now) const;
  struct Slot {
    Transfer fetch;
    Instant until;  // then the bus is free for the next one
  };
  Slot take(std::uint32_t lane, Instant now);

  // By how much a payload whose last byte came off the link now is late in memory.
  Duration arrival_lag(std::uint32_t lane, Instant now, Bytes size);

 private:
  enum Direction : std::uint8_t { from_memory, to_memory };
  struct Lane {
    std::uint32_t bus = 0;
    std::array<Instant, 2> busy_until{};  // by direction
    Fifo<Transfer> fetches;
  };
  Duration time_of(const Lane& lane, Direction way, Instant at, Bytes size) const;

  const NicSpec& spec_;
  std::vector<Lane> lanes_;
  std::vector<std::vector<std::uint32_t>> buses_;                     // the lanes of each
  std::map<std::pair<NodeId, std::uint32_t>, std::uint32_t> bus_of_;  // by node and socket
  std::map<NicId, std::uint32_t> lane_of_;
};

}  // namespace dryfly::nic
