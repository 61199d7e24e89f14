// The wiring of a machine whose cables are listed one by one (docs/guide/cabling.md) instead of dealt by rule.
#include <algorithm>
#include <charconv>

#include "core/spec/fields.hpp"
#include "core/topology/dragonfly.hpp"

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

}  // namespace

void Dragonfly::connect_cables(const Spec& spec) {
  const std::uint32_t groups = group_count();
  const std::uint32_t cables = spec.small(fields::topology_cables);
  global_ports_.assign(switch_count(), 0);
  std::vector<std::vector<GlobalEnd>> ends(std::size_t{groups} * groups);
  const auto between = [&](SwitchId from, SwitchId to) {
    return std::size_t{group_of(from).value} * groups + group_of(to).value;
  };
  const auto next_port = [&](SwitchId at) {
    const std::uint32_t port = local_ports(group_of(at)) + global_ports_[at.value]++;
    if (port >= most_ports) {
      throw SpecError("topology.cables: switch " + std::to_string(at.value) + " needs more than " +
                      std::to_string(most_ports) + " ports");
    }
    return static_cast<std::uint8_t>(port);
  };
  for (std::uint32_t cable = 0; cable < cables; ++cable) {
    const std::string name = fields::topology_cable.at({cable});
    const std::string& text = spec.text(fields::topology_cable, {cable});
    const std::vector<SwitchId> at = switches_named(name, text, switch_count());
    if (at.size() != 2 || group_of(at[0]) == group_of(at[1])) {
      throw SpecError(name + " = `" + text + "`: accepted are two switches of two groups");
    }
    const GlobalEnd end{at[0], at[1], next_port(at[0]), next_port(at[1])};
    ends[between(at[0], at[1])].push_back(end);
    ends[between(at[1], at[0])].push_back({end.far, end.near, end.far_port, end.near_port});
  }
  for (std::uint32_t from = 0; from < groups; ++from) {
    for (std::uint32_t to = 0; to < groups; ++to) {
      const auto& here = ends[std::size_t{from} * groups + to];
      const bool have_nodes = kinds_[groups_[from].kind].nodes > 0 && kinds_[groups_[to].kind].nodes > 0;
      if (from != to && have_nodes && here.empty()) {
        throw SpecError("topology.cables: nodes of group " + std::to_string(from) + " cannot reach those of group " +
                        std::to_string(to) + "; accepted is one cable or more between them");
      }
      first_end_.push_back(ends_.size());
      ends_.insert(ends_.end(), here.begin(), here.end());
    }
  }
  first_end_.push_back(ends_.size());
}

void Dragonfly::place_listed_nics(const Spec& spec) {
  nic_ports_.assign(switch_count(), 0);
  std::size_t nic = 0;
  for (std::uint32_t node = 0; node < node_count_; ++node) {
    const std::string name = fields::topology_node_switches.at({node});
    const std::string& text = spec.text(fields::topology_node_switches, {node});
    const std::vector<SwitchId> at = switches_named(name, text, switch_count());
    const Kind& kind = kind_of({node});
    const std::uint32_t before = (node - kind.first_node) / kind.nodes;
    const GroupId own{static_cast<std::uint32_t>(
        std::find_if(groups_.begin(), groups_.end(), [&](const Group& each) { return &kinds_[each.kind] == &kind; }) -
        groups_.begin() + before)};
    const bool fits = std::all_of(at.begin(), at.end(), [&](SwitchId each) { return group_of(each) == own; });
    if (at.size() != kind.nics_per_node || !fits) {
      throw SpecError(name + " = `" + text + "`: accepted is a switch of the node's group for each of its " +
                      std::to_string(kind.nics_per_node) + " NICs");
    }
    for (const SwitchId each : at) {
      const std::uint32_t port = local_ports(own) + global_ports_[each.value] + nic_ports_[each.value]++;
      if (port >= most_ports) {
        throw SpecError(name + ": switch " + std::to_string(each.value) + " would need more than " +
                        std::to_string(most_ports) + " ports");
      }
      nic_places_[nic++] = {each, static_cast<std::uint8_t>(port)};
    }
  }
}

}  // namespace dryfly
