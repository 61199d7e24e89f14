#include "core/storage/storage_plan.hpp"

#include <charconv>
#include <string>
#include <string_view>

#include "core/spec/fields.hpp"

namespace dryfly::storage {
namespace {

// "0-7,12": nodes of the machine.
std::vector<NodeId> nodes_named(const std::string& field, std::string_view text, const Dragonfly& dragonfly) {
  const auto refuse = [&] {
    throw SpecError(field + " = `" + std::string(text) + "`: accepted are ranges such as 0-7,12 of the nodes 0 to " +
                    std::to_string(dragonfly.node_count() - 1));
  };
  std::vector<NodeId> nodes;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    std::uint32_t first = 0;
    auto read = std::from_chars(at, end, first);
    if (read.ec != std::errc{}) refuse();
    std::uint32_t last = first;
    if (read.ptr != end && *read.ptr == '-') read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc{} || last < first || last >= dragonfly.node_count()) refuse();
    for (std::uint32_t node = first; node <= last; ++node) nodes.push_back({node});
    at = read.ptr;
    if (at != end && *at++ != ',') refuse();
  }
  return nodes;
}

std::vector<NicId> nics_of(const std::vector<NodeId>& nodes, const Dragonfly& dragonfly) {
  std::vector<NicId> nics;
  for (const NodeId node : nodes) {
    for (std::uint32_t index = 0; index < dragonfly.nics_per_node(node); ++index) {
      nics.push_back(dragonfly.nic_of(node, index));
    }
  }
  return nics;
}

Stream read_stream(const Spec& spec, std::uint64_t n, const Dragonfly& dragonfly) {
  Stream stream;
  stream.direction = spec.text(fields::storage_stream_direction, {n}) == "read" ? Direction::read : Direction::write;
  const std::string nodes = fields::storage_stream_nodes.at({n});
  stream.clients = nics_of(nodes_named(nodes, spec.text(fields::storage_stream_nodes, {n}), dragonfly), dragonfly);
  if (stream.clients.empty()) throw SpecError(nodes + ": these have no NIC");
  stream.rate = Rate{spec.number(fields::storage_stream_nic_rate_bytes_per_s, {n})};
  stream.transfer = Bytes{spec.number(fields::storage_stream_transfer_bytes, {n})};
  stream.from = Duration{spec.number(fields::storage_stream_from_ps, {n})};
  stream.until = Duration{fields::storage_stream_until_ps.most};
  if (spec.has(fields::storage_stream_until_ps, {n})) {
    stream.until = Duration{spec.number_between(stream.from.ps + 1, UINT64_MAX, fields::storage_stream_until_ps, {n})};
  }
  if (spec.has(fields::storage_stream_nic_amount_bytes, {n})) {
    stream.amount = Bytes{spec.number(fields::storage_stream_nic_amount_bytes, {n})};
  }
  stream.traffic_class = static_cast<TrafficClass>(spec.number(fields::storage_stream_class, {n}));
  return stream;
}

}  // namespace

bool Plan::any_in(const Spec& spec) { return spec.has(fields::storage_streams); }

Plan Plan::read(const Spec& spec, const Dragonfly& dragonfly) {
  Plan plan;
  plan.seed = spec.number(fields::storage_seed);
  plan.servers = nics_of(nodes_named("storage.servers", spec.text(fields::storage_servers), dragonfly), dragonfly);
  if (plan.servers.empty()) throw SpecError("storage.servers: these nodes have no NIC");
  plan.server_rate = Rate{spec.number(fields::storage_server_nic_rate_bytes_per_s)};
  plan.server_latency = Duration{spec.number(fields::storage_server_latency_ps)};
  plan.request = Bytes{spec.number(fields::storage_request_bytes)};
  plan.in_flight = spec.small(fields::storage_in_flight);
  const std::uint64_t streams = spec.number(fields::storage_streams);
  for (std::uint64_t n = 0; n < streams; ++n) {
    plan.streams.push_back(read_stream(spec, n, dragonfly));
  }
  return plan;
}

}  // namespace dryfly::storage
