#include "core/nic/nic_spec.hpp"

namespace dryfly {

namespace {

// Far above any real latency; keeps sums of instants far from overflow.
constexpr std::uint64_t one_second_ps = 1'000'000'000'000;
// The largest message of the provider (fact sheet, C1).
constexpr std::uint64_t largest_message = 4'294'967'295;

constexpr std::uint64_t most_nics = 64;
constexpr std::uint64_t most_sockets = 15;

Duration latency(const Spec& spec, std::string_view name) { return {spec.number_in(name, 0, one_second_ps)}; }

}  // namespace

NicSpec nic_spec(const Spec& spec) {
  NicSpec result;
  result.eager_max = Bytes{spec.number_in("nic.eager_bytes", 0, largest_message)};
  result.inline_max = Bytes{spec.number_in("nic.inline_bytes", 0, result.eager_max.count)};
  result.pushed_max = Bytes{spec.number_in("nic.pushed_bytes", 0, result.inline_max.count)};
  result.rendezvous_head = Bytes{spec.number_in("nic.rendezvous_head_bytes", 0, result.eager_max.count)};
  result.egress_latency = latency(spec, "nic.egress_latency_ps");
  result.dma_read_latency = latency(spec, "nic.dma_read_latency_ps");
  result.ingress_latency = latency(spec, "nic.ingress_latency_ps");
  if (spec.has("nic.reduction_latency_ps")) result.reduction_latency = latency(spec, "nic.reduction_latency_ps");
  result.command_interval = latency(spec, "nic.command_interval_ps");
  result.local_latency = latency(spec, "node.local_latency_ps");
  result.local_rate = Rate{spec.number_in("node.local_rate_bytes_per_s", 1, UINT64_MAX)};
  const std::uint64_t entries = spec.number_in("nic.list_entries", 1, UINT32_MAX);
  const std::uint64_t share_ppm = spec.number_in("nic.list_entries_share_ppm", 1, 1'000'000);
  result.list_entries = static_cast<std::uint32_t>(entries * share_ppm / 1'000'000);
  if (spec.has("nic.rendezvous_get")) result.gets_by_nic = spec.text("nic.rendezvous_get") == "on";
  result.framing.payload_max = Bytes{spec.number_in("fabric.packet.payload_bytes", 1, largest_message)};
  result.framing.header = Bytes{spec.number("fabric.packet.header_bytes")};
  result.framing.acknowledgement = Bytes{spec.number("fabric.packet.ack_bytes")};
  if (spec.has("node.socket_latency_ps")) result.socket_latency = latency(spec, "node.socket_latency_ps");
  if (spec.has("node.pcie_rate_bytes_per_s")) {
    result.pcie_rate = Rate{spec.number_in("node.pcie_rate_bytes_per_s", 0, UINT64_MAX)};
    result.link_rate = Rate{spec.number_in("fabric.link.rate_bytes_per_s", 1, UINT64_MAX)};
  }
  return result;
}

std::vector<std::uint32_t> nic_sockets(const Spec& spec) {
  std::vector<std::uint32_t> sockets;
  const std::uint64_t nics = spec.has("node.nics") ? spec.number_in("node.nics", 0, most_nics) : 0;
  for (std::uint64_t nic = 0; nic < nics; ++nic) {
    const std::string name = "node.nic." + std::to_string(nic) + ".socket";
    sockets.push_back(static_cast<std::uint32_t>(spec.number_in(name, 0, most_sockets)));
  }
  return sockets;
}

}  // namespace dryfly
