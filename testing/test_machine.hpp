// The machine of the conductor's tests.
#pragma once

#include <string>

namespace dryfly {

// One group of one switch with two nodes of one NIC each; two ranks. Latencies are round numbers.
inline std::string spec_text(const std::string& more = "") {
  return "machine test\n"
         "topology.kinds 1\ntopology.kind.0.name compute\ntopology.kind.0.groups 1\ntopology.kind.0.switches 1\n"
         "topology.kind.0.nodes 2\ntopology.kind.0.nics_per_node 1\ntopology.kind.0.attach same_switch\n"
         "topology.kind.0.local_links 1\ntopology.global.0.0 0\ntopology.ports_per_switch 64\n"
         "fabric.link.rate_bytes_per_s 25000000000\nfabric.link.edge_flight_ps 10000\n"
         "fabric.link.local_flight_ps 10000\nfabric.link.global_flight_ps 100000\nfabric.switch.latency_ps 350000\n"
         "fabric.switch.input_buffer_bytes 98304\nfabric.packet.payload_bytes 2048\nfabric.packet.header_bytes 64\n"
         "fabric.packet.ack_bytes 35\nfabric.nic.window_packets 64\nfabric.routing.algorithm minimal\n"
         "fabric.routing.bias_shift 1\nfabric.routing.bias_bytes 1024\nfabric.extra_flight.count 0\n"
         "fabric.switch.latency_spread_ps 0\nfabric.routing.staleness_ps 500000\n"
         "fabric.congestion.management on\nfabric.congestion.hot_queue_bytes 32768\n"
         "fabric.congestion.round_trip_ps 4000000\nfabric.qos.classes 1\nfabric.qos.default best_effort\n"
         "fabric.qos.class.0.name best_effort\nfabric.qos.class.0.assured_ppm 100000\n"
         "fabric.qos.class.0.ceiling_ppm 1000000\nfabric.qos.class.0.fabric_ppm 500000\n"
         "fabric.qos.class.0.priority 0\nfabric.qos.class.0.bucket_frames 2\n"
         "nic.inline_bytes 192\nnic.pushed_bytes 96\nnic.eager_bytes 18433\nnic.rendezvous_head_bytes "
         "2048\nnic.egress_latency_ps 200000\n"
         "nic.dma_read_latency_ps 300000\nnic.ingress_latency_ps 200000\nnic.command_interval_ps "
         "10000\nnic.list_entries 16384\nnic.list_entries_share_ppm 1000000\n"
         "nic.command_latency_ps 300000\nnic.completion_latency_ps 300000\nnode.local_latency_ps 100000\n"
         "node.cores 4\nnode.threads 1\nnode.domains 1\nnode.domain.0.socket 0\nnode.domain.0.cores 4\n"
         "node.local_rate_bytes_per_s 20000000000\nnode.copy_ps 80000\nhost.send_ps 100000\nhost.receive_ps "
         "50000\nhost.rma_ps 100000\n"
         "host.completion_ps 50000\nhost.poll_ps 20000\nhost.clock_read_ps 20000\nhost.match_ps "
         "100000\nhost.compute_mode none\n"
         "host.compute_factor_ppm 1000000\nrun.seed 1\nrun.ranks 2\n"
         "run.rank.0.node 0\nrun.rank.0.nic 0\nrun.rank.1.node 1\nrun.rank.1.nic 0\nrun.node.0.name n0\n"
         "run.node.1.name n1\nrun.arena_bytes 67108864\nrun.on_node provider\n" +
         (more.empty() ? "run.cross_memory 1\n" : more);
}

}  // namespace dryfly
