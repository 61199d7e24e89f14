#include "core/topology/groups.hpp"

#include <algorithm>
#include <utility>

#include "core/spec/fields.hpp"
#include "core/unit/check.hpp"

namespace dryfly {

Groups::Groups(const Spec& spec) {
  const auto kind_count = spec.small(fields::topology_kinds);
  std::uint64_t nodes = 0;
  std::uint64_t nics = 0;
  for (std::uint32_t k = 0; k < kind_count; ++k) {
    GroupKind kind;
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
      groups_.push_back({k, switch_count()});
      group_of_switch_.insert(group_of_switch_.end(), kind.switches, count() - 1);
    }
    kinds_.push_back(std::move(kind));
  }
  node_count_ = static_cast<std::uint32_t>(nodes);
  nic_count_ = static_cast<std::uint32_t>(nics);
}

const GroupKind& Groups::kind_of(NodeId node) const {
  DRYFLY_CHECK(node.value < node_count_);
  const auto after =
      std::upper_bound(kinds_.begin(), kinds_.end(), node.value,
                       [](std::uint32_t value, const GroupKind& kind) { return value < kind.first_node; });
  return *(after - 1);
}

GroupId Groups::group_of(NodeId node) const {
  const GroupKind& kind = kind_of(node);
  const auto first =
      std::find_if(groups_.begin(), groups_.end(), [&](const Group& each) { return &kinds_[each.kind] == &kind; });
  return {static_cast<std::uint32_t>(first - groups_.begin()) + (node.value - kind.first_node) / kind.nodes};
}

NicId Groups::nic_of(NodeId node, std::uint32_t index) const {
  const GroupKind& kind = kind_of(node);
  DRYFLY_CHECK(index < kind.nics_per_node);
  return {kind.first_nic + (node.value - kind.first_node) * kind.nics_per_node + index};
}

NodeId Groups::node_of(NicId nic) const {
  DRYFLY_CHECK(nic.value < nic_count_);
  const auto after =
      std::upper_bound(kinds_.begin(), kinds_.end(), nic.value,
                       [](std::uint32_t value, const GroupKind& kind) { return value < kind.first_nic; });
  const GroupKind& kind = *(after - 1);
  return {kind.first_node + (nic.value - kind.first_nic) / kind.nics_per_node};
}

}  // namespace dryfly
