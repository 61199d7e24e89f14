// The wiring of a machine whose cables are listed one by one (docs/guide/cabling.md) instead of dealt by rule.
#include <algorithm>
#include <charconv>

#include "core/spec/fields.hpp"
#include "core/topology/cables.hpp"

namespace dryfly {
namespace {

std::vector<SwitchId> switches_named(const std::string& name, const std::string& text, std::uint32_t count) {
  std::vector<SwitchId> found;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    SwitchId next;
    const auto [stop, error] = std::from_chars(at, end, next.value);
    if (error != std::errc{} || next.value >= count || (stop != end && *stop != ' ')) {
      throw SpecError(name + " = `" + text + "`: accepted are switches 0 to " + std::to_string(count - 1));
    }
    found.push_back(next);
    at = stop == end ? stop : stop + 1;
  }
  return found;
}

void connect_cables(const Spec& spec, const Groups& groups, Cables& wired) {
  const std::uint32_t count = groups.count();
  const std::uint32_t cables = spec.small(fields::topology_cables);
  std::vector<std::vector<GlobalEnd>> ends(std::size_t{count} * count);
  const auto between = [&](SwitchId from, SwitchId to) {
    return std::size_t{groups.group_of(from).value} * count + groups.group_of(to).value;
  };
  const auto next_port = [&](SwitchId at) {
    const std::uint32_t port = groups.local_ports(groups.group_of(at)) + wired.global_ports[at.value]++;
    if (port >= most_switch_ports) {
      throw SpecError("topology.cables: switch " + std::to_string(at.value) + " needs more than " +
                      std::to_string(most_switch_ports) + " ports");
    }
    return static_cast<std::uint8_t>(port);
  };
  for (std::uint32_t cable = 0; cable < cables; ++cable) {
    const std::string name = fields::topology_cable.at({cable});
    const std::string& text = spec.text(fields::topology_cable, {cable});
    const std::vector<SwitchId> at = switches_named(name, text, groups.switch_count());
    if (at.size() != 2 || groups.group_of(at[0]) == groups.group_of(at[1])) {
      throw SpecError(name + " = `" + text + "`: accepted are two switches of two groups");
    }
    const GlobalEnd end{at[0], at[1], next_port(at[0]), next_port(at[1])};
    ends[between(at[0], at[1])].push_back(end);
    ends[between(at[1], at[0])].push_back({end.far, end.near, end.far_port, end.near_port});
  }
  for (std::uint32_t from = 0; from < count; ++from) {
    for (std::uint32_t to = 0; to < count; ++to) {
      const auto& here = ends[std::size_t{from} * count + to];
      const bool have_nodes = groups.kind({from}).nodes > 0 && groups.kind({to}).nodes > 0;
      if (from != to && have_nodes && here.empty()) {
        throw SpecError("topology.cables: nodes of group " + std::to_string(from) + " cannot reach those of group " +
                        std::to_string(to) + "; accepted is one cable or more between them");
      }
      wired.first_end.push_back(wired.ends.size());
      wired.ends.insert(wired.ends.end(), here.begin(), here.end());
    }
  }
  wired.first_end.push_back(wired.ends.size());
}

void place_listed_nics(const Spec& spec, const Groups& groups, Cables& wired) {
  std::size_t nic = 0;
  for (std::uint32_t node = 0; node < groups.node_count(); ++node) {
    const std::string name = fields::topology_node_switches.at({node});
    const std::string& text = spec.text(fields::topology_node_switches, {node});
    const std::vector<SwitchId> at = switches_named(name, text, groups.switch_count());
    const GroupKind& kind = groups.kind_of(NodeId{node});
    const GroupId own = groups.group_of(NodeId{node});
    const bool fits = std::all_of(at.begin(), at.end(), [&](SwitchId each) { return groups.group_of(each) == own; });
    if (at.size() != kind.nics_per_node || !fits) {
      throw SpecError(name + " = `" + text + "`: accepted is a switch of the node's group for each of its " +
                      std::to_string(kind.nics_per_node) + " NICs");
    }
    for (const SwitchId each : at) {
      const std::uint32_t port =
          groups.local_ports(own) + wired.global_ports[each.value] + wired.nic_ports[each.value]++;
      if (port >= most_switch_ports) {
        throw SpecError(name + ": switch " + std::to_string(each.value) + " would need more than " +
                        std::to_string(most_switch_ports) + " ports");
      }
      wired.nic_places[nic++] = {each, static_cast<std::uint8_t>(port)};
    }
  }
}

}  // namespace

Cables listed_cables(const Spec& spec, const Groups& groups) {
  Cables wired(groups);
  connect_cables(spec, groups, wired);
  place_listed_nics(spec, groups, wired);
  return wired;
}

}  // namespace dryfly
