// The resolved spec of a dragonfly with one kind of group, as text, for tests and benches of the fabric. The numbers
// are those assumed for Slingshot-11 (fact sheet B2 and G) where nothing else is said.
#pragma once

#include <cstdint>
#include <string>

#include "core/spec/spec.hpp"

namespace dryfly::fabric {

struct SampleMachine {
  std::uint64_t groups = 4;
  std::uint64_t switches = 4;
  std::uint64_t nodes = 8;  // of each group, dealt to its switches
  std::uint64_t nics_per_node = 1;
  std::uint64_t local_links = 1;
  std::uint64_t global_links = 2;
  std::uint64_t rate_bytes_per_s = 25'000'000'000;
  std::uint64_t edge_flight_ps = 10'000;
  std::uint64_t local_flight_ps = 10'000;
  std::uint64_t global_flight_ps = 100'000;
  std::uint64_t switch_latency_ps = 350'000;
  std::uint64_t input_buffer_bytes = 65'536;
  std::uint64_t payload_bytes = 2'048;
  std::uint64_t header_bytes = 64;
  std::uint64_t ack_bytes = 32;
  std::uint64_t window_packets = 64;
  std::string routing = "adaptive";
  std::uint64_t bias_shift = 1;
  std::uint64_t bias_bytes = 4'224;
  std::uint64_t seed = 1;
  std::string more = "fabric.extra_flight.count 0\n";

  Spec spec() const {
    std::string text = "topology.kinds 1\ntopology.kind.0.name compute\ntopology.kind.0.attach same_switch\n";
    const auto add = [&text](const std::string& name, std::uint64_t value) {
      text += name + " " + std::to_string(value) + "\n";
    };
    add("topology.kind.0.groups", groups);
    add("topology.kind.0.switches", switches);
    add("topology.kind.0.nodes", nodes);
    add("topology.kind.0.nics_per_node", nics_per_node);
    add("topology.kind.0.local_links", local_links);
    add("topology.global.0.0", global_links);
    add("topology.ports_per_switch", 64);
    add("fabric.link.rate_bytes_per_s", rate_bytes_per_s);
    add("fabric.link.edge_flight_ps", edge_flight_ps);
    add("fabric.link.local_flight_ps", local_flight_ps);
    add("fabric.link.global_flight_ps", global_flight_ps);
    add("fabric.switch.latency_ps", switch_latency_ps);
    add("fabric.switch.input_buffer_bytes", input_buffer_bytes);
    add("fabric.packet.payload_bytes", payload_bytes);
    add("fabric.packet.header_bytes", header_bytes);
    add("fabric.packet.ack_bytes", ack_bytes);
    add("fabric.nic.window_packets", window_packets);
    add("fabric.routing.bias_shift", bias_shift);
    add("fabric.routing.bias_bytes", bias_bytes);
    add("run.seed", seed);
    return Spec::parse(text + "fabric.routing.algorithm " + routing + "\n" + more);
  }
};

}  // namespace dryfly::fabric
