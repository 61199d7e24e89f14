// The machine's network as a graph: groups of several kinds, their switches, the cables inside and between groups,
// and the nodes with their NICs. Pure wiring: it knows of no rate, no buffer and no time.
//
// Models the dragonfly of Slingshot machines (docs/model/topology.md#the-dragonfly): the switches of a group are
// connected all to all, groups by a number of links that depends on their kinds. The links of a group to all others
// are dealt to its switches in turn, ordered by group, which spreads them evenly (dealt_cables.cpp).
//
// Wiring plans of real machines are not published; one's own can be given cable by cable (listed_cables.cpp): global
// links and NICs are then where the list says, and what is missing within a group is absent (fabric/link_faults.hpp).
//
// Leaves out: which two links share an optical cable.
//
// Numbering: groups kind by kind; switches, nodes and NICs group by group. The ports of a switch are numbered with
// local links first, then global links, then NICs; a port has both directions. The port id is unique in the run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "core/spec/spec.hpp"
#include "core/topology/cables.hpp"
#include "core/topology/groups.hpp"
#include "core/unit/large_pages.hpp"
#include "core/unit/unit.hpp"

namespace dryfly {

// What is plugged into a port of a switch.
struct Peer {
  enum class Kind : std::uint8_t { nothing, local_switch, global_switch, nic };
  Kind kind = Kind::nothing;
  std::uint8_t port = 0;  // of the switch at the other end
  std::uint32_t id = 0;   // of the switch or NIC at the other end
};

class Dragonfly {
 public:
  static constexpr std::uint32_t most_ports = most_switch_ports;

  // Throws SpecError where the wiring does not fit or leaves nodes unreachable.
  explicit Dragonfly(const Spec& spec);

  std::uint32_t group_count() const { return groups_.count(); }
  std::uint32_t switch_count() const { return groups_.switch_count(); }
  std::uint32_t node_count() const { return groups_.node_count(); }
  std::uint32_t nic_count() const { return groups_.nic_count(); }
  std::uint32_t port_count() const { return static_cast<std::uint32_t>(peers_.size()); }
  std::uint64_t local_link_count() const { return groups_.local_link_count(); }
  std::uint64_t global_link_count() const { return cables_.ends.size() / 2; }

  std::uint32_t nics_per_node(NodeId node) const { return groups_.kind_of(node).nics_per_node; }
  NicId nic_of(NodeId node, std::uint32_t index) const { return groups_.nic_of(node, index); }
  NodeId node_of(NicId nic) const { return groups_.node_of(nic); }
  std::uint32_t index_in_node(NicId nic) const { return nic.value - nic_of(node_of(nic), 0).value; }
  SwitchId switch_of(NicId nic) const { return cables_.nic_places[nic.value].at; }
  std::uint8_t port_of(NicId nic) const { return cables_.nic_places[nic.value].port; }
  // Those of a group have consecutive numbers.
  NicId first_nic(GroupId group) const;
  std::uint32_t nics_in(GroupId group) const;

  GroupId group_of(SwitchId at) const { return groups_.group_of(at); }
  SwitchId first_switch(GroupId group) const { return groups_.first_switch(group); }
  std::uint32_t switches_in(GroupId group) const { return groups_.kind(group).switches; }
  // Parallel links between two switches of the group.
  std::uint32_t local_links_in(GroupId group) const { return groups_.kind(group).local_links; }
  const std::string& kind_name(GroupId group) const { return groups_.kind(group).name; }

  // The switch that a port with the id of its first one belongs to.
  SwitchId switch_with(std::uint32_t first_port) const {
    const auto found = std::lower_bound(first_port_.begin(), first_port_.end(), first_port);
    return {static_cast<std::uint32_t>(found - first_port_.begin())};
  }
  std::uint32_t first_port(SwitchId at) const { return first_port_[at.value]; }
  std::uint32_t ports_of(SwitchId at) const { return first_port_[at.value + 1] - first_port_[at.value]; }
  const Peer& peer(SwitchId at, std::uint32_t port) const { return peers_[first_port(at) + port]; }
  // The port of `from` that leads to `to`, another switch of its group, by the given one of their parallel links.
  std::uint8_t local_port(SwitchId from, SwitchId to, std::uint32_t parallel) const {
    const GroupId group = groups_.group_of(from);
    const std::uint32_t place = to.value - groups_.first_switch(group).value - (to > from ? 1 : 0);
    return static_cast<std::uint8_t>(place * groups_.kind(group).local_links + parallel);
  }
  // The global links between two groups, seen from the first.
  std::span<const GlobalEnd> global_ends(GroupId from, GroupId to) const {
    const std::size_t place = std::size_t{from.value} * groups_.count() + to.value;
    return {cables_.ends.data() + cables_.first_end[place], cables_.ends.data() + cables_.first_end[place + 1]};
  }

 private:
  void number_ports(std::uint32_t ports_per_switch);
  void connect_ports();

  Groups groups_;
  Cables cables_;
  LargeVector<std::uint32_t> first_port_;  // of each switch, and the end
  LargeVector<Peer> peers_;                // of each port
};

}  // namespace dryfly
