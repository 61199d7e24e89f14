#include "core/fabric/fabric_spec.hpp"

#include <string_view>

namespace dryfly::fabric {
namespace {

// Flights and transmission times are kept in 32 bits, up to 4.29 ms. A millisecond is 200 km of cable; a frame of
// 128 KiB takes 1.3 ms at the lowest rate accepted.
constexpr std::uint64_t longest_flight_ps = 1'000'000'000;

}  // namespace

FabricSpec FabricSpec::read(const Spec& spec) {
  const auto duration = [&](std::string_view name) { return Duration{spec.number_in(name, 0, longest_flight_ps)}; };
  FabricSpec fabric;
  fabric.rate = {spec.number_in("fabric.link.rate_bytes_per_s", 100'000'000, 100'000'000'000'000)};
  fabric.edge_flight = duration("fabric.link.edge_flight_ps");
  fabric.local_flight = duration("fabric.link.local_flight_ps");
  fabric.global_flight = duration("fabric.link.global_flight_ps");
  fabric.switch_latency = duration("fabric.switch.latency_ps");
  fabric.latency_spread = {spec.number_in("fabric.switch.latency_spread_ps", 0, fabric.switch_latency.ps)};
  fabric.payload_max = {spec.number_in("fabric.packet.payload_bytes", 1, 65536)};
  fabric.header = {spec.number_in("fabric.packet.header_bytes", 1, 65536)};
  fabric.ack = {spec.number_in("fabric.packet.ack_bytes", 1, 65536)};
  // A packet moves on only when the next buffer has room for a largest one.
  fabric.input_buffer = {
      spec.number_in("fabric.switch.input_buffer_bytes", fabric.frame_max().count, std::uint64_t{1} << 30)};
  fabric.window_packets =
      static_cast<std::uint32_t>(spec.number_in("fabric.nic.window_packets", 1, std::uint64_t{1} << 20));
  fabric.routing = spec.text("fabric.routing.algorithm");
  if (spec.has("fabric.routing.group_load")) fabric.group_load = spec.text("fabric.routing.group_load");
  fabric.bias_shift = static_cast<std::uint32_t>(spec.number_in("fabric.routing.bias_shift", 0, 16));
  fabric.bias = {spec.number_in("fabric.routing.bias_bytes", 0, std::uint64_t{1} << 30)};
  fabric.staleness = duration("fabric.routing.staleness_ps");
  fabric.qos = QosProfile::read(spec, transmission_time(fabric.frame_max(), fabric.rate));
  const std::string& management = spec.text("fabric.congestion.management");
  if (management != "on" && management != "off") {
    throw SpecError("fabric.congestion.management = `" + management + "`: accepted are on and off");
  }
  fabric.congestion_management = management == "on";
  fabric.hot_queue = {spec.number_in("fabric.congestion.hot_queue_bytes", 1, std::uint64_t{1} << 30)};
  fabric.congestion_round_trip = {spec.number_in("fabric.congestion.round_trip_ps", 1, longest_flight_ps)};
  fabric.seed = spec.number("run.seed");
  return fabric;
}

}  // namespace dryfly::fabric
