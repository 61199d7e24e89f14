#include "core/network/fabric/fabric_spec.hpp"

#include "core/spec/fields.hpp"

namespace dryfly::fabric {

// Flights and transmission times are kept in 32 bits of picoseconds, up to 4.29 ms.
static_assert(fields::fabric_link_global_flight_ps.most <= UINT32_MAX / 4);

TrackerSpec TrackerSpec::read(const Spec& spec) {
  TrackerSpec trackers;
  trackers.modelled = spec.has(fields::fabric_nic_trackers_source_connections);
  if (!trackers.modelled) return trackers;
  const auto duration = [&](const NumberField& field) { return Duration{spec.number(field)}; };
  trackers.source_connections = spec.small(fields::fabric_nic_trackers_source_connections);
  trackers.target_connections = spec.small(fields::fabric_nic_trackers_target_connections);
  trackers.results = spec.small(fields::fabric_nic_trackers_results);
  trackers.idle = duration(fields::fabric_nic_trackers_idle_ps);
  trackers.close = duration(fields::fabric_nic_trackers_close_ps);
  trackers.handling = duration(fields::nic_retry_refused_handling_ps);
  trackers.rounds_at_once = spec.small(fields::nic_retry_refused_at_once);
  trackers.pause = duration(fields::nic_retry_refused_pause_ps);
  trackers.pause_max = duration(fields::nic_retry_refused_pause_max_ps);
  trackers.batch = spec.small(fields::nic_retry_refused_batch);
  return trackers;
}

FabricSpec FabricSpec::read(const Spec& spec) {
  const auto duration = [&](const NumberField& field) { return Duration{spec.number(field)}; };
  const auto bytes = [&](const NumberField& field) { return Bytes{spec.number(field)}; };
  FabricSpec fabric;
  fabric.rate = {spec.number(fields::fabric_link_rate_bytes_per_s)};
  fabric.edge_flight = duration(fields::fabric_link_edge_flight_ps);
  fabric.local_flight = duration(fields::fabric_link_local_flight_ps);
  fabric.global_flight = duration(fields::fabric_link_global_flight_ps);
  fabric.switch_latency = duration(fields::fabric_switch_latency_ps);
  fabric.latency_spread = {spec.number_between(0, fabric.switch_latency.ps, fields::fabric_switch_latency_spread_ps)};
  fabric.payload_max = bytes(fields::fabric_packet_payload_bytes);
  fabric.header = bytes(fields::fabric_packet_header_bytes);
  fabric.ack = bytes(fields::fabric_packet_ack_bytes);
  // A packet moves on only when the next buffer has room for a largest one.
  fabric.input_buffer = {
      spec.number_between(fabric.frame_max().count, UINT64_MAX, fields::fabric_switch_input_buffer_bytes)};
  fabric.window_packets = spec.small(fields::fabric_nic_window_packets);
  fabric.trackers = TrackerSpec::read(spec);
  if (spec.has(fields::fabric_nic_loopback_rate_bytes_per_s)) {
    fabric.loopback_rate = Rate{spec.number(fields::fabric_nic_loopback_rate_bytes_per_s)};
  }
  fabric.staleness = duration(fields::fabric_routing_staleness_ps);
  fabric.qos = QosProfile::read(spec, transmission_time(fabric.frame_max(), fabric.rate));
  fabric.congestion_management = spec.text(fields::fabric_congestion_management) == "on";
  fabric.hot_queue = bytes(fields::fabric_congestion_hot_queue_bytes);
  fabric.congestion_round_trip = duration(fields::fabric_congestion_round_trip_ps);
  fabric.seed = spec.number(fields::run_seed);
  return fabric;
}

}  // namespace dryfly::fabric
