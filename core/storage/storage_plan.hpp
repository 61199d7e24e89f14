// What a job, or others beside it, read from and write to the machine's storage groups, as the resolved spec says it:
// lines `storage.*`, which python/dryfly/scenario/storage.py makes of a file (`--storage`) and the machine's table
// [storage].
#pragma once

#include <cstdint>
#include <vector>

#include "core/contract/network.hpp"
#include "core/spec/spec.hpp"
#include "core/topology/dragonfly.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::storage {

enum class Direction : std::uint8_t { read, write };

struct Stream {
  Direction direction = Direction::write;
  std::vector<NicId> clients;
  Rate rate;       // of each client NIC, asked for
  Bytes transfer;  // of one exchange
  Duration from;   // since virtual time has started
  Duration until;
  Bytes amount;  // of each client NIC; 0: as long as it lasts
  TrafficClass traffic_class = TrafficClass::best_effort;
};

struct Plan {
  std::uint64_t seed = 0;
  std::vector<NicId> servers;
  Rate server_rate;             // of a server's NIC: what its storage gives or takes
  Duration server_latency;      // of a request in a server
  Bytes request;                // a request, and a reply
  std::uint32_t in_flight = 1;  // exchanges of one client NIC and stream
  std::vector<Stream> streams;

  static bool any_in(const Spec& spec);
  // Throws SpecError.
  static Plan read(const Spec& spec, const Dragonfly& dragonfly);
};

}  // namespace dryfly::storage
