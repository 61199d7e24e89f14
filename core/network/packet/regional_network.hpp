// The network in regions, one for each group, which several threads simulate at a time: each region has an engine, its
// switches and its NICs, and what leaves it by a global link travels as a message. The result is that of PacketNetwork
// to the picosecond, whatever the number of threads.
//
// All regions run through a window of time, then hand over what they have for each other, then begin the next window.
// Nothing from elsewhere can be due within the window: the fastest is the credit for a packet, which is home no sooner
// than its smallest frame takes on the wire, and a flight. Even on one thread this is faster on a large machine: a
// region's state stays in the cache through its window.
//
// The workload is in regions too: a region's engine and network serve only the NICs of its group, a delivery is told to
// the sink of the target's group and an acknowledgement to that of the source's, from the thread that has the region.
// Leaves out: faults, observers and ordered transfers, whose paths two regions would write.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/network/packet/packet_network.hpp"
#include "core/spec/spec.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly {

class RegionalNetwork {
 public:
  // Throws SpecError, also for a spec with faults. The dragonfly must outlive it.
  RegionalNetwork(const Dragonfly& dragonfly, const Spec& spec);
  ~RegionalNetwork();
  RegionalNetwork(const RegionalNetwork&) = delete;
  RegionalNetwork& operator=(const RegionalNetwork&) = delete;

  Engine& engine(GroupId group);
  // Where the NICs of the group submit.
  Carrier& network(GroupId group);

  // Runs until nothing is left to do, by so many threads.
  void run(std::uint32_t threads);

  NetworkTotals totals() const;
  bool at_rest() const;
  std::uint64_t events_run() const;

 private:
  struct Part;

  void collect(std::uint32_t group, Instant limit);

  Duration window_;
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace dryfly
