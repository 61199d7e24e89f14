// The resolved spec of a dragonfly with one kind of group, as text, for tests and benches of the fabric. The numbers
// are those of data/hardware/slingshot11.toml where nothing else is said.
#pragma once

#include <cstdint>
#include <string>

#include "core/spec/spec.hpp"

namespace dryfly::fabric {

// One class of a profile; shares in percent.
inline std::string profile_class(int index, const std::string& name, int assured, int ceiling, int fabric,
                                 int priority = 0, int bucket = 2) {
  const std::string prefix = "fabric.qos.class." + std::to_string(index) + ".";
  const auto line = [&](const std::string& leaf, int value) {
    return prefix + leaf + " " + std::to_string(value) + "\n";
  };
  return prefix + "name " + name + "\n" + line("assured_ppm", assured * 10'000) +
         line("ceiling_ppm", ceiling * 10'000) + line("fabric_ppm", fabric * 10'000) + line("priority", priority) +
         line("bucket_frames", bucket);
}

// LLBeBdEt, the profile that machines ship with (docs/model/classes.md#profiles).
inline std::string standard_profile() {
  return "fabric.qos.classes 4\nfabric.qos.default best_effort\n" + profile_class(0, "low_latency", 2, 5, 10, 1, 4) +
         profile_class(1, "bulk_data", 10, 100, 20) + profile_class(2, "best_effort", 10, 100, 50) +
         profile_class(3, "ethernet", 10, 100, 20);
}

// What a machine with faults has besides: its manager's sweeps, how old packets get, and when the NIC sends again.
inline std::string fault_times(int retries) {
  std::string text =
      "fabric.manager.topology_sweep_ps 10000000000000\nfabric.manager.routing_sweep_ps 5000000000000\n"
      "fabric.manager.deployment_sweep_ps 10000000000000\nfabric.packet.age_ps 1001000000000\n"
      "nic.retry.timeout_ps 1073741824000\nnic.retry.count " +
      std::to_string(retries) + "\n";
  for (int retry = 0; retry < retries; ++retry) {
    text += "nic.retry.delay." + std::to_string(retry) + ".ps " + std::to_string(retry * 4'000'000'000'000) + "\n";
  }
  return text;
}

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
  std::uint64_t latency_spread_ps = 0;
  std::uint64_t input_buffer_bytes = 65'536;
  std::uint64_t payload_bytes = 2'048;
  std::uint64_t header_bytes = 64;
  std::uint64_t ack_bytes = 32;
  std::uint64_t window_packets = 64;
  std::string routing = "adaptive";
  std::uint64_t bias_shift = 1;
  std::uint64_t bias_bytes = 4'224;
  std::uint64_t staleness_ps = 500'000;
  std::string management = "on";
  std::uint64_t hot_queue_bytes = 32'768;
  std::string profile = standard_profile();
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
    add("fabric.switch.latency_spread_ps", latency_spread_ps);
    add("fabric.switch.input_buffer_bytes", input_buffer_bytes);
    add("fabric.packet.payload_bytes", payload_bytes);
    add("fabric.packet.header_bytes", header_bytes);
    add("fabric.packet.ack_bytes", ack_bytes);
    add("fabric.nic.window_packets", window_packets);
    add("fabric.routing.bias_shift", bias_shift);
    add("fabric.routing.bias_bytes", bias_bytes);
    add("fabric.routing.staleness_ps", staleness_ps);
    add("fabric.congestion.hot_queue_bytes", hot_queue_bytes);
    add("fabric.congestion.round_trip_ps", 4'000'000);
    text += "fabric.congestion.management " + management + "\n" + profile;
    add("run.seed", seed);
    return Spec::parse(text + "fabric.routing.algorithm " + routing + "\n" + more);
  }
};

}  // namespace dryfly::fabric
