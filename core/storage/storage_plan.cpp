#include "core/storage/storage_plan.hpp"

#include <charconv>
#include <string>
#include <string_view>

namespace dryfly::storage {
namespace {

constexpr std::uint64_t longest_ps = 1'000'000'000'000'000'000;  // as of faults: 11 days
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 60;
constexpr std::uint64_t largest_transfer = std::uint64_t{1} << 32;

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

Stream read_stream(const Spec& spec, const std::string& entry, const Dragonfly& dragonfly) {
  Stream stream;
  const std::string direction = spec.text(entry + ".direction");
  if (direction != "read" && direction != "write") {
    throw SpecError(entry + ".direction = `" + direction + "`: accepted are read and write");
  }
  stream.direction = direction == "read" ? Direction::read : Direction::write;
  stream.clients = nics_of(nodes_named(entry + ".nodes", spec.text(entry + ".nodes"), dragonfly), dragonfly);
  if (stream.clients.empty()) throw SpecError(entry + ".nodes: these have no NIC");
  stream.rate = Rate{spec.number_in(entry + ".nic_rate_bytes_per_s", 1, UINT64_MAX)};
  stream.transfer = Bytes{spec.number_in(entry + ".transfer_bytes", 1, largest_transfer)};
  stream.from = Duration{spec.number_in(entry + ".from_ps", 0, longest_ps)};
  stream.until = Duration{2 * longest_ps};
  if (spec.has(entry + ".until_ps")) {
    stream.until = Duration{spec.number_in(entry + ".until_ps", stream.from.ps + 1, 2 * longest_ps)};
  }
  if (spec.has(entry + ".nic_amount_bytes")) {
    stream.amount = Bytes{spec.number_in(entry + ".nic_amount_bytes", 1, most_bytes)};
  }
  stream.traffic_class = static_cast<TrafficClass>(spec.number_in(entry + ".class", 0, 5));
  return stream;
}

}  // namespace

bool Plan::any_in(const Spec& spec) { return spec.has("storage.streams"); }

Plan Plan::read(const Spec& spec, const Dragonfly& dragonfly) {
  Plan plan;
  plan.seed = spec.number("storage.seed");
  plan.servers = nics_of(nodes_named("storage.servers", spec.text("storage.servers"), dragonfly), dragonfly);
  if (plan.servers.empty()) throw SpecError("storage.servers: these nodes have no NIC");
  plan.server_rate = Rate{spec.number_in("storage.server_nic_rate_bytes_per_s", 1, UINT64_MAX)};
  plan.server_latency = Duration{spec.number_in("storage.server_latency_ps", 0, 1'000'000'000'000)};
  plan.request = Bytes{spec.number_in("storage.request_bytes", 1, largest_transfer)};
  plan.in_flight = static_cast<std::uint32_t>(spec.number_in("storage.in_flight", 1, 65'536));
  const std::uint64_t streams = spec.number_in("storage.streams", 0, 255);
  for (std::uint64_t n = 0; n < streams; ++n) {
    plan.streams.push_back(read_stream(spec, "storage.stream." + std::to_string(n), dragonfly));
  }
  return plan;
}

}  // namespace dryfly::storage
