#include "core/topology/dragonfly.hpp"

#include <algorithm>

#include "core/spec/fields.hpp"

namespace dryfly {

static_assert(fields::topology_ports_per_switch.most == Dragonfly::most_ports);

Cables::Cables(const Groups& groups)
    : global_ports(groups.switch_count()), nic_ports(groups.switch_count()), nic_places(groups.nic_count()) {}

Dragonfly::Dragonfly(const Spec& spec)
    : groups_(spec),
      cables_(spec.has(fields::topology_cables) ? listed_cables(spec, groups_) : dealt_cables(spec, groups_)) {
  number_ports(spec.small(fields::topology_ports_per_switch));
  connect_ports();
}

void Dragonfly::number_ports(std::uint32_t ports_per_switch) {
  std::uint32_t port = 0;
  for (std::uint32_t at = 0; at < switch_count(); ++at) {
    const std::uint32_t ports = groups_.local_ports(group_of({at})) + cables_.global_ports[at] + cables_.nic_ports[at];
    if (ports > ports_per_switch) {
      throw SpecError("topology.ports_per_switch = " + std::to_string(ports_per_switch) + ": switch " +
                      std::to_string(at) + " of a `" + kind_name(group_of({at})) + "` group needs " +
                      std::to_string(ports) + " (" + std::to_string(groups_.local_ports(group_of({at}))) + " local, " +
                      std::to_string(cables_.global_ports[at]) + " global, " + std::to_string(cables_.nic_ports[at]) +
                      " NICs)");
    }
    first_port_.push_back(port);
    port += ports;
  }
  first_port_.push_back(port);
}

void Dragonfly::connect_ports() {
  peers_.resize(first_port_.back());
  for (std::uint32_t at = 0; at < switch_count(); ++at) {
    const GroupId group = group_of({at});
    const std::uint32_t first = first_switch(group).value;
    for (std::uint32_t other = first; other < first + switches_in(group); ++other) {
      for (std::uint32_t parallel = 0; other != at && parallel < local_links_in(group); ++parallel) {
        peers_[first_port_[at] + local_port({at}, {other}, parallel)] = {Peer::Kind::local_switch,
                                                                         local_port({other}, {at}, parallel), other};
      }
    }
  }
  for (const GlobalEnd& end : cables_.ends) {
    peers_[first_port(end.near) + end.near_port] = {Peer::Kind::global_switch, end.far_port, end.far.value};
  }
  for (std::uint32_t nic = 0; nic < nic_count(); ++nic) {
    const NicPlace& place = cables_.nic_places[nic];
    peers_[first_port(place.at) + place.port] = {Peer::Kind::nic, 0, nic};
  }
}

NicId Dragonfly::first_nic(GroupId group) const {
  const auto before = [&](const NicPlace& place, GroupId of) { return group_of(place.at) < of; };
  const auto found = std::lower_bound(cables_.nic_places.begin(), cables_.nic_places.end(), group, before);
  return {static_cast<std::uint32_t>(found - cables_.nic_places.begin())};
}

std::uint32_t Dragonfly::nics_in(GroupId group) const {
  return first_nic({group.value + 1}).value - first_nic(group).value;
}

}  // namespace dryfly
