// The numbers of the fabric, read once from the resolved spec (docs/resolved-spec.md) and checked.
#pragma once

#include <cstdint>
#include <string>

#include "core/spec/spec.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::fabric {

struct FabricSpec {
  Rate rate;
  Duration edge_flight;
  Duration local_flight;
  Duration global_flight;
  Duration switch_latency;
  Bytes input_buffer;
  Bytes payload_max;
  Bytes header;
  Bytes ack;
  std::uint32_t window_packets = 0;
  std::string routing;
  std::uint32_t bias_shift = 0;
  Bytes bias;
  std::uint64_t seed = 0;

  // Throws SpecError.
  static FabricSpec read(const Spec& spec);

  Bytes frame_max() const { return payload_max + header; }
};

}  // namespace dryfly::fabric
