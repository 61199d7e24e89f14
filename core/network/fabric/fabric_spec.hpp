// The numbers of the fabric, read once from the resolved spec (docs/reference/resolved-spec.md) and checked.
#pragma once

#include <cstdint>

#include "core/network/fabric/qos.hpp"
#include "core/spec/spec.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::fabric {

// What a NIC can keep track of, and how it goes on where that is not enough; see core/network/packet/connections.hpp.
struct TrackerSpec {
  bool modelled = false;  // else there is room for everything
  std::uint32_t source_connections = 0;
  std::uint32_t target_connections = 0;
  std::uint32_t results = 0;
  Duration idle;                     // after which a connection is closed
  Duration close;                    // what a close takes
  Duration handling;                 // of what was refused, by the retry handler
  std::uint32_t rounds_at_once = 0;  // in which it is sent again without a pause
  Duration pause;                    // the first, which is doubled from then on
  Duration pause_max;
  std::uint32_t batch = 0;  // packets at a time, where the target has no room for results

  // Throws SpecError.
  static TrackerSpec read(const Spec& spec);
};

struct FabricSpec {
  Rate rate;
  Duration edge_flight;
  Duration local_flight;
  Duration global_flight;
  Duration switch_latency;  // the mean
  Duration latency_spread;  // up to so much less or more, all alike
  Bytes input_buffer;
  Bytes payload_max;
  Bytes header;
  Bytes ack;
  std::uint32_t window_packets = 0;
  TrackerSpec trackers;
  Rate loopback_rate;  // of payload, from a NIC to itself; 0: as a link
  Duration staleness;  // age of what a switch knows of another's load
  QosProfile qos;
  bool congestion_management = false;
  Bytes hot_queue;                 // of an end-point
  Duration congestion_round_trip;  // expected between a switch and the sources it holds back
  std::uint64_t seed = 0;

  // Throws SpecError.
  static FabricSpec read(const Spec& spec);

  Bytes frame_max() const { return payload_max + header; }
};

}  // namespace dryfly::fabric
