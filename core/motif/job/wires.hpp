// What one load takes on links and in switches, from the spec; used by the carriages that answer at once.
#pragma once

#include <cstdint>

#include "core/spec/fields.hpp"
#include "core/spec/spec.hpp"
#include "core/topology/dragonfly.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::motif {

// A longer payload is carried in parts, so that two of them share a link in turns and each finds its own way.
inline constexpr Bytes part_bytes{std::uint64_t{64} << 10};

struct Wires {
  std::uint64_t edge_ps = 0;
  std::uint64_t local_ps = 0;
  std::uint64_t global_ps = 0;
  std::uint64_t switch_ps = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t header_bytes = 0;
  std::uint64_t ack_ps = 0;  // of its last byte behind its first
  Rate rate;

  static Wires read(const Spec& spec) {
    const Rate rate{spec.number(fields::fabric_link_rate_bytes_per_s)};
    return {.edge_ps = spec.number(fields::fabric_link_edge_flight_ps),
            .local_ps = spec.number(fields::fabric_link_local_flight_ps),
            .global_ps = spec.number(fields::fabric_link_global_flight_ps),
            .switch_ps = spec.number(fields::fabric_switch_latency_ps),
            .payload_bytes = spec.number(fields::fabric_packet_payload_bytes),
            .header_bytes = spec.number(fields::fabric_packet_header_bytes),
            .ack_ps = transmission_time(Bytes{spec.number(fields::fabric_packet_ack_bytes)}, rate).ps,
            .rate = rate};
  }

  // All packets of a load, one behind the other.
  std::uint64_t serialisation_ps(Bytes size) const {
    return transmission_time(Bytes{size.count + packets(size) * header_bytes}, rate).ps;
  }
  std::uint64_t packets(Bytes size) const {
    return size.count <= payload_bytes ? 1 : (size.count + payload_bytes - 1) / payload_bytes;
  }
  // The number of the port by which a NIC sends; those of switches come before.
  static std::uint32_t nic_port(const Dragonfly& topology, NicId nic) { return topology.port_count() + nic.value; }
  // From the head at the first link to the head at the NIC.
  std::uint64_t way_ps(std::uint64_t local_links, std::uint64_t global_links) const {
    return 2 * edge_ps + local_links * local_ps + global_links * global_ps +
           (local_links + global_links + 1) * switch_ps;
  }
};

}  // namespace dryfly::motif
