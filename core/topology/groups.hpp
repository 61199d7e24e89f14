// The groups of a machine by their kinds, and the numbers of what is in them: groups kind by kind; switches, nodes and
// NICs group by group.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/spec/spec.hpp"
#include "core/unit/large_pages.hpp"
#include "core/unit/unit.hpp"

namespace dryfly {

// Groups that are alike.
struct GroupKind {
  std::string name;
  std::uint32_t groups = 0;
  std::uint32_t switches = 0;
  std::uint32_t nodes = 0;
  std::uint32_t nics_per_node = 0;
  bool spread = false;            // a node's NICs hang on switches of their own
  std::uint32_t local_links = 0;  // between two switches
  std::uint32_t first_node = 0;
  std::uint32_t first_nic = 0;
};

class Groups {
 public:
  // Throws SpecError.
  explicit Groups(const Spec& spec);

  std::uint32_t count() const { return static_cast<std::uint32_t>(groups_.size()); }
  std::uint32_t switch_count() const { return static_cast<std::uint32_t>(group_of_switch_.size()); }
  std::uint32_t node_count() const { return node_count_; }
  std::uint32_t nic_count() const { return nic_count_; }
  std::uint64_t local_link_count() const { return local_link_count_; }

  const std::vector<GroupKind>& kinds() const { return kinds_; }
  std::uint32_t kind_number(GroupId group) const { return groups_[group.value].kind; }
  const GroupKind& kind(GroupId group) const { return kinds_[groups_[group.value].kind]; }
  const GroupKind& kind_of(NodeId node) const;
  GroupId group_of(SwitchId at) const { return {group_of_switch_[at.value]}; }
  GroupId group_of(NodeId node) const;
  SwitchId first_switch(GroupId group) const { return {groups_[group.value].first_switch}; }
  // Of each switch of the group, to the others.
  std::uint32_t local_ports(GroupId group) const { return (kind(group).switches - 1) * kind(group).local_links; }

  NicId nic_of(NodeId node, std::uint32_t index) const;
  NodeId node_of(NicId nic) const;

 private:
  struct Group {
    std::uint32_t kind = 0;
    std::uint32_t first_switch = 0;
  };

  std::vector<GroupKind> kinds_;
  std::vector<Group> groups_;
  LargeVector<std::uint32_t> group_of_switch_;
  std::uint32_t node_count_ = 0;
  std::uint32_t nic_count_ = 0;
  std::uint64_t local_link_count_ = 0;
};

}  // namespace dryfly
