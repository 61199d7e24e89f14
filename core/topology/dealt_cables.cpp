// The wiring by rule (docs/model/topology.md#the-dragonfly): the links of a group to all others are dealt to its
// switches in turn, ordered by group, and nodes to switches in blocks.
#include <string>

#include "core/spec/fields.hpp"
#include "core/topology/cables.hpp"

namespace dryfly {
namespace {

// The number of links between two groups, by their kinds.
using GlobalCounts = std::vector<std::vector<std::uint32_t>>;

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

GlobalCounts read_global_counts(const Spec& spec, std::size_t kinds) {
  GlobalCounts counts(kinds, std::vector<std::uint32_t>(kinds));
  for (std::size_t i = 0; i < kinds; ++i) {
    for (std::size_t j = i; j < kinds; ++j) {
      counts[i][j] = counts[j][i] = spec.small(fields::topology_global, {i, j});
    }
  }
  return counts;
}

// Every route crosses one link between the two groups, or two by way of a third: nodes need the direct link.
void check_reachable(const GlobalCounts& counts, const std::vector<GroupKind>& kinds) {
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    for (std::size_t j = i; j < kinds.size(); ++j) {
      const bool have_nodes = kinds[i].nodes > 0 && kinds[j].nodes > 0;
      const bool have_pairs = i == j ? kinds[i].groups > 1 : kinds[i].groups > 0 && kinds[j].groups > 0;
      if (have_nodes && have_pairs && counts[i][j] == 0) {
        throw SpecError(fields::topology_global.at({i, j}) + " = 0: nodes of `" + kinds[i].name +
                        "` groups cannot reach those of other `" + kinds[j].name + "` groups; accepted is 1 or more");
      }
    }
  }
}

void deal_global_links(const GlobalCounts& counts, const Groups& groups, Cables& cables) {
  const std::uint32_t count = groups.count();
  cables.first_end.reserve(std::size_t{count} * count + 1);
  for (std::uint32_t from = 0; from < count; ++from) {
    const std::uint32_t switches = groups.kind({from}).switches;
    std::uint32_t dealt = 0;
    for (std::uint32_t to = 0; to < count; ++to) {
      cables.first_end.push_back(cables.ends.size());
      if (to == from) continue;
      for (std::uint32_t link = counts[groups.kind_number({from})][groups.kind_number({to})]; link > 0;
           --link, ++dealt) {
        const SwitchId near{groups.first_switch({from}).value + dealt % switches};
        const std::uint32_t port = groups.local_ports({from}) + cables.global_ports[near.value]++;
        if (port >= most_switch_ports) {
          throw SpecError("topology.global: a switch of a `" + groups.kind({from}).name + "` group needs more than " +
                          std::to_string(most_switch_ports) + " ports");
        }
        cables.ends.push_back({near, {}, static_cast<std::uint8_t>(port), 0});
      }
    }
  }
  cables.first_end.push_back(cables.ends.size());
  for (std::size_t from = 0; from < count; ++from) {
    for (std::size_t to = 0; to < count; ++to) {
      const std::size_t here = cables.first_end[from * count + to];
      const std::size_t there = cables.first_end[to * count + from];
      const std::size_t links = cables.first_end[from * count + to + 1] - here;
      for (std::size_t link = 0; link < links; ++link) {
        cables.ends[here + link].far = cables.ends[there + link].near;
        cables.ends[here + link].far_port = cables.ends[there + link].near_port;
      }
    }
  }
}

void place_nics(const Groups& groups, Cables& cables) {
  std::size_t nic = 0;
  for (std::uint32_t group = 0; group < groups.count(); ++group) {
    const GroupKind& kind = groups.kind({group});
    for (std::uint32_t node = 0; node < kind.nodes; ++node) {
      for (std::uint32_t index = 0; index < kind.nics_per_node; ++index, ++nic) {
        const SwitchId at{groups.first_switch({group}).value +
                          switch_in_group(node, kind.nodes, kind.switches, index, kind.nics_per_node, kind.spread)};
        const std::uint32_t before = cables.global_ports[at.value] + cables.nic_ports[at.value]++;
        const std::uint32_t port = (kind.switches - 1) * kind.local_links + before;
        if (port >= most_switch_ports) {
          throw SpecError("topology.kind." + std::to_string(groups.kind_number({group})) +
                          ".nodes = " + std::to_string(kind.nodes) + ": a switch would need more than " +
                          std::to_string(most_switch_ports) + " ports");
        }
        cables.nic_places[nic] = {at, static_cast<std::uint8_t>(port)};
      }
    }
  }
}

}  // namespace

Cables dealt_cables(const Spec& spec, const Groups& groups) {
  const GlobalCounts counts = read_global_counts(spec, groups.kinds().size());
  check_reachable(counts, groups.kinds());
  Cables cables(groups);
  deal_global_links(counts, groups, cables);
  place_nics(groups, cables);
  return cables;
}

}  // namespace dryfly
