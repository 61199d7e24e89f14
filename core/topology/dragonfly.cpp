#include "core/topology/dragonfly.hpp"

#include <algorithm>

#include "core/spec/fields.hpp"

namespace dryfly {
namespace {

static_assert(fields::topology_ports_per_switch.most == Dragonfly::most_ports);

// The switch, counted within the group, that NIC `index` of node `node` of the group hangs on. Nodes are dealt to
// the switches in blocks of equal size. A node that is spread over k switches shares these k with its neighbours,
// as the blades of one chassis do, if k divides the number of switches.
std::uint32_t switch_in_group(std::uint32_t node, std::uint32_t nodes, std::uint32_t switches, std::uint32_t index,
                              std::uint32_t nics_per_node, bool spread) {
  auto first = static_cast<std::uint32_t>(std::uint64_t{node} * switches / nodes);
  if (!spread) return first;
  if (switches % nics_per_node == 0) first -= first % nics_per_node;
  return (first + index) % switches;
}

}  // namespace

Dragonfly::Dragonfly(const Spec& spec) {
  const auto ports_per_switch = spec.small(fields::topology_ports_per_switch);
  read_kinds(spec);
  if (spec.has(fields::topology_cables)) {
    connect_cables(spec);
    place_listed_nics(spec);
  } else {
    const GlobalCounts counts = read_global_counts(spec);
    check_reachable(counts);
    deal_global_links(counts);
    place_nics();
  }
  number_ports(ports_per_switch);
  connect_ports();
}

void Dragonfly::read_kinds(const Spec& spec) {
  const auto kind_count = spec.small(fields::topology_kinds);
  std::uint64_t nodes = 0;
  std::uint64_t nics = 0;
  for (std::uint32_t k = 0; k < kind_count; ++k) {
    Kind kind;
    kind.name = spec.text(fields::topology_kind_name, {k});
    kind.groups = spec.small(fields::topology_kind_groups, {k});
    kind.switches = spec.small(fields::topology_kind_switches, {k});
    kind.nodes = spec.small(fields::topology_kind_nodes, {k});
    const NumberField& nics_per_node = fields::topology_kind_nics_per_node;
    kind.nics_per_node =
        static_cast<std::uint32_t>(spec.number_between(kind.nodes == 0 ? 0 : 1, UINT64_MAX, nics_per_node, {k}));
    kind.local_links = spec.small(fields::topology_kind_local_links, {k});
    kind.spread = spec.text(fields::topology_kind_attach, {k}) == "spread";
    kind.first_node = static_cast<std::uint32_t>(nodes);
    kind.first_nic = static_cast<std::uint32_t>(nics);
    nodes += std::uint64_t{kind.groups} * kind.nodes;
    nics += std::uint64_t{kind.groups} * kind.nodes * kind.nics_per_node;
    if (nics > 1'000'000)
      throw SpecError(fields::topology_kind_nodes.at({k}) + ": the machine has over 1,000,000 NICs");
    local_link_count_ += std::uint64_t{kind.groups} * kind.switches * (kind.switches - 1) / 2 * kind.local_links;
    for (std::uint32_t g = 0; g < kind.groups; ++g) {
      groups_.push_back({k, static_cast<std::uint32_t>(group_of_switch_.size())});
      group_of_switch_.insert(group_of_switch_.end(), kind.switches, group_count() - 1);
    }
    kinds_.push_back(std::move(kind));
  }
  node_count_ = static_cast<std::uint32_t>(nodes);
  nic_places_.resize(nics);
}

Dragonfly::GlobalCounts Dragonfly::read_global_counts(const Spec& spec) const {
  GlobalCounts counts(kinds_.size(), std::vector<std::uint32_t>(kinds_.size()));
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    for (std::size_t j = i; j < kinds_.size(); ++j) {
      counts[i][j] = counts[j][i] = spec.small(fields::topology_global, {i, j});
    }
  }
  return counts;
}

// Every route crosses one link between the two groups, or two by way of a third: nodes need the direct link.
void Dragonfly::check_reachable(const GlobalCounts& counts) const {
  for (std::size_t i = 0; i < kinds_.size(); ++i) {
    for (std::size_t j = i; j < kinds_.size(); ++j) {
      const bool have_nodes = kinds_[i].nodes > 0 && kinds_[j].nodes > 0;
      const bool have_pairs = i == j ? kinds_[i].groups > 1 : kinds_[i].groups > 0 && kinds_[j].groups > 0;
      if (have_nodes && have_pairs && counts[i][j] == 0) {
        throw SpecError(fields::topology_global.at({i, j}) + " = 0: nodes of `" + kinds_[i].name +
                        "` groups cannot reach those of other `" + kinds_[j].name + "` groups; accepted is 1 or more");
      }
    }
  }
}

void Dragonfly::deal_global_links(const GlobalCounts& counts) {
  const std::uint32_t groups = group_count();
  global_ports_.assign(switch_count(), 0);
  first_end_.reserve(std::size_t{groups} * groups + 1);
  for (std::uint32_t from = 0; from < groups; ++from) {
    const std::uint32_t switches = switches_in({from});
    std::uint32_t dealt = 0;
    for (std::uint32_t to = 0; to < groups; ++to) {
      first_end_.push_back(ends_.size());
      if (to == from) continue;
      for (std::uint32_t link = counts[groups_[from].kind][groups_[to].kind]; link > 0; --link, ++dealt) {
        const SwitchId near{groups_[from].first_switch + dealt % switches};
        const std::uint32_t port = local_ports({from}) + global_ports_[near.value]++;
        if (port >= most_ports) {
          throw SpecError("topology.global: a switch of a `" + kind_name({from}) + "` group needs more than " +
                          std::to_string(most_ports) + " ports");
        }
        ends_.push_back({near, {}, static_cast<std::uint8_t>(port), 0});
      }
    }
  }
  first_end_.push_back(ends_.size());
  for (std::size_t from = 0; from < groups; ++from) {
    for (std::size_t to = 0; to < groups; ++to) {
      const std::size_t here = first_end_[from * groups + to];
      const std::size_t there = first_end_[to * groups + from];
      const std::size_t links = first_end_[from * groups + to + 1] - here;
      for (std::size_t link = 0; link < links; ++link) {
        ends_[here + link].far = ends_[there + link].near;
        ends_[here + link].far_port = ends_[there + link].near_port;
      }
    }
  }
}

void Dragonfly::place_nics() {
  nic_ports_.assign(switch_count(), 0);
  std::size_t nic = 0;
  for (const Group& group : groups_) {
    const Kind& kind = kinds_[group.kind];
    for (std::uint32_t node = 0; node < kind.nodes; ++node) {
      for (std::uint32_t index = 0; index < kind.nics_per_node; ++index, ++nic) {
        const SwitchId at{group.first_switch +
                          switch_in_group(node, kind.nodes, kind.switches, index, kind.nics_per_node, kind.spread)};
        const std::uint32_t before = global_ports_[at.value] + nic_ports_[at.value]++;
        const std::uint32_t port = (kind.switches - 1) * kind.local_links + before;
        if (port >= most_ports) {
          throw SpecError("topology.kind." + std::to_string(group.kind) + ".nodes = " + std::to_string(kind.nodes) +
                          ": a switch would need more than " + std::to_string(most_ports) + " ports");
        }
        nic_places_[nic] = {at, static_cast<std::uint8_t>(port)};
      }
    }
  }
}

void Dragonfly::number_ports(std::uint32_t ports_per_switch) {
  std::uint32_t port = 0;
  for (std::uint32_t at = 0; at < switch_count(); ++at) {
    const std::uint32_t ports = local_ports({group_of_switch_[at]}) + global_ports_[at] + nic_ports_[at];
    if (ports > ports_per_switch) {
      throw SpecError("topology.ports_per_switch = " + std::to_string(ports_per_switch) + ": switch " +
                      std::to_string(at) + " of a `" + kind_name({group_of_switch_[at]}) + "` group needs " +
                      std::to_string(ports) + " (" + std::to_string(local_ports({group_of_switch_[at]})) + " local, " +
                      std::to_string(global_ports_[at]) + " global, " + std::to_string(nic_ports_[at]) + " NICs)");
    }
    first_port_.push_back(port);
    port += ports;
  }
  first_port_.push_back(port);
}

void Dragonfly::connect_ports() {
  peers_.resize(first_port_.back());
  for (std::uint32_t at = 0; at < switch_count(); ++at) {
    const GroupId group{group_of_switch_[at]};
    const std::uint32_t first = groups_[group.value].first_switch;
    for (std::uint32_t other = first; other < first + switches_in(group); ++other) {
      for (std::uint32_t parallel = 0; other != at && parallel < local_links_in(group); ++parallel) {
        peers_[first_port_[at] + local_port({at}, {other}, parallel)] = {Peer::Kind::local_switch,
                                                                         local_port({other}, {at}, parallel), other};
      }
    }
  }
  for (const GlobalEnd& end : ends_) {
    peers_[first_port(end.near) + end.near_port] = {Peer::Kind::global_switch, end.far_port, end.far.value};
  }
  for (std::uint32_t nic = 0; nic < nic_count(); ++nic) {
    const NicPlace& place = nic_places_[nic];
    peers_[first_port(place.at) + place.port] = {Peer::Kind::nic, 0, nic};
  }
}

const Dragonfly::Kind& Dragonfly::kind_of(NodeId node) const {
  DRYFLY_CHECK(node.value < node_count_);
  const auto after = std::upper_bound(kinds_.begin(), kinds_.end(), node.value,
                                      [](std::uint32_t value, const Kind& kind) { return value < kind.first_node; });
  return *(after - 1);
}

NicId Dragonfly::nic_of(NodeId node, std::uint32_t index) const {
  const Kind& kind = kind_of(node);
  DRYFLY_CHECK(index < kind.nics_per_node);
  return {kind.first_nic + (node.value - kind.first_node) * kind.nics_per_node + index};
}

NicId Dragonfly::first_nic(GroupId group) const {
  const auto before = [&](const NicPlace& place, GroupId of) { return group_of(place.at) < of; };
  const auto found = std::lower_bound(nic_places_.begin(), nic_places_.end(), group, before);
  return {static_cast<std::uint32_t>(found - nic_places_.begin())};
}

std::uint32_t Dragonfly::nics_in(GroupId group) const {
  return first_nic({group.value + 1}).value - first_nic(group).value;
}

NodeId Dragonfly::node_of(NicId nic) const {
  DRYFLY_CHECK(nic.value < nic_count());
  const auto after = std::upper_bound(kinds_.begin(), kinds_.end(), nic.value,
                                      [](std::uint32_t value, const Kind& kind) { return value < kind.first_nic; });
  const Kind& kind = *(after - 1);
  return {kind.first_node + (nic.value - kind.first_nic) / kind.nics_per_node};
}

}  // namespace dryfly
