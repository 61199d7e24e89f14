// The numbers of the fabric, read once from the resolved spec (docs/reference/resolved-spec.md) and checked.
#pragma once

#include <cstdint>

#include "core/network/fabric/qos.hpp"
#include "core/spec/spec.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::fabric {

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
