#include "conductor/link_ends.hpp"

#include <string>

namespace dryfly {

namespace {

// The switch that has a port; ports are numbered switch by switch.
SwitchId switch_of_port(const Dragonfly& topology, std::uint32_t port) {
  std::uint32_t low = 0;
  std::uint32_t high = topology.switch_count();
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    (topology.first_port({middle}) <= port ? low : high) = middle;
  }
  return {low};
}

void write_switch(JsonWriter& json, const char* end, const Dragonfly& topology, SwitchId at) {
  const GroupId group = topology.group_of(at);
  json.member(std::string(end) + "_group", group.value);
  json.member(std::string(end) + "_switch", at.value - topology.first_switch(group).value);
}

void write_nic(JsonWriter& json, const Dragonfly& topology, NicId nic) {
  json.member("node", topology.node_of(nic).value);
  json.member("nic", topology.index_in_node(nic));
}

}  // namespace

std::uint32_t port_opposite(const Dragonfly& topology, std::uint32_t port) {
  if (port >= topology.port_count()) {
    const NicId nic{port - topology.port_count()};
    return topology.first_port(topology.switch_of(nic)) + topology.port_of(nic);
  }
  const SwitchId at = switch_of_port(topology, port);
  const Peer& peer = topology.peer(at, port - topology.first_port(at));
  if (peer.kind == Peer::Kind::nic) return topology.port_count() + peer.id;
  return topology.first_port({peer.id}) + peer.port;
}

std::uint32_t index_at_switch(const Dragonfly& topology, std::uint32_t port) {
  return port - topology.first_port(switch_of_port(topology, port));
}

void write_link_ends(JsonWriter& json, const Dragonfly& topology, std::uint32_t port) {
  if (port >= topology.port_count()) {
    const NicId nic{port - topology.port_count()};
    json.member("kind", "injection");
    write_nic(json, topology, nic);
    write_switch(json, "to", topology, topology.switch_of(nic));
    return;
  }
  const SwitchId from = switch_of_port(topology, port);
  const Peer& peer = topology.peer(from, port - topology.first_port(from));
  write_switch(json, "from", topology, from);
  if (peer.kind == Peer::Kind::nic) {
    json.member("kind", "ejection");
    write_nic(json, topology, {peer.id});
    return;
  }
  json.member("kind", peer.kind == Peer::Kind::local_switch ? "local" : "global");
  write_switch(json, "to", topology, {peer.id});
}

}  // namespace dryfly
