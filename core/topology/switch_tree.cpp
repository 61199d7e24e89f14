#include "core/topology/switch_tree.hpp"

#include <map>

namespace dryfly {

std::vector<std::uint32_t> switch_tree(const Dragonfly& topology, const std::vector<NicId>& nics, std::uint32_t root) {
  const auto switch_of = [&](std::uint32_t place) { return topology.switch_of(nics[place]); };
  const auto group_of = [&](std::uint32_t place) { return topology.group_of(switch_of(place)); };
  std::map<SwitchId, std::uint32_t> first_on_switch{{switch_of(root), root}};
  std::map<GroupId, std::uint32_t> first_in_group{{group_of(root), root}};
  const auto size = static_cast<std::uint32_t>(nics.size());
  for (std::uint32_t place = 0; place < size; ++place) {
    first_on_switch.try_emplace(switch_of(place), place);
    first_in_group.try_emplace(group_of(place), place);
  }
  std::vector<std::uint32_t> parents(size);
  for (std::uint32_t place = 0; place < size; ++place) {
    std::uint32_t parent = first_on_switch.at(switch_of(place));
    if (parent == place) parent = first_in_group.at(group_of(place));
    if (parent == place) parent = root;
    parents[place] = parent;
  }
  return parents;
}

}  // namespace dryfly
