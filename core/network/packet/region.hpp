// What the regions of a network that is simulated in parts have in common, and what passes between them: see
// core/network/packet/regional_network.hpp. A network in one part is a region of its own.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/network/packet/credits.hpp"
#include "core/network/packet/packet.hpp"
#include "core/network/packet/shared_pool.hpp"
#include "core/network/packet/transfers.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::fabric {

struct Port;
struct Told;

// One region's message to another: an event of the other one's engine, or, where `credit_bytes` is set, a credit that
// is home at `at_ps` at the port that the key names.
struct Crossing {
  std::uint64_t at_ps = 0;
  std::uint64_t key = 0;
  std::uint32_t credit_bytes = 0;
  std::uint8_t traffic_class = 0;
  std::uint8_t channel = 0;
};

// By the group they go to.
using Outbox = std::vector<std::vector<Crossing>>;

// Every port, NIC and record is written by one region at a time.
struct SharedState {
  SharedState();
  ~SharedState();
  LargeVector<Port> ports;
  LargeVector<Told> told;  // by port of a switch
  std::array<LargeVector<Credits::Line>, most_classes> credit_lines;
  std::array<LargeVector<std::uint64_t>, most_classes> other_bytes;  // by port
  std::uint32_t first_class = none;
  std::vector<std::uint16_t> group_behind;  // of global ports, by port of a switch; empty in one part
  std::shared_ptr<SharedPool<Packet>::Space> packets = std::make_shared<SharedPool<Packet>::Space>();
  std::shared_ptr<SharedPool<OpenTransfer>::Space> transfers = std::make_shared<SharedPool<OpenTransfer>::Space>();
};

struct Region {
  std::shared_ptr<SharedState> shared = std::make_shared<SharedState>();
  // In parts only: the region's own group, and what leaves it.
  bool is_part = false;
  GroupId group;
  std::shared_ptr<Outbox> outbox;
};

}  // namespace dryfly::fabric
