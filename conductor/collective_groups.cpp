#include "conductor/collective_groups.hpp"

#include <algorithm>
#include <cstring>

#include "core/topology/switch_tree.hpp"

namespace dryfly {

namespace {

wire::Contribution value_at(const GroupTree& tree, const std::vector<std::vector<std::uint32_t>>& children,
                            const std::vector<wire::Contribution>& parts, std::uint32_t place) {
  wire::Contribution value = parts[place];
  for (const std::uint32_t child : children[place]) wire::combine(value, value_at(tree, children, parts, child));
  return value;
}

bool is_distinct(std::vector<EndpointId> list) {
  std::sort(list.begin(), list.end());
  return std::adjacent_find(list.begin(), list.end()) == list.end();
}

}  // namespace

bool make_tree(const Dragonfly& topology, const std::vector<NicId>& nics, const std::set<EndpointId>& roots,
               GroupTree& tree) {
  const auto root = std::find_if(tree.members.begin(), tree.members.end(),
                                 [&](EndpointId member) { return !roots.contains(member); });
  if (root == tree.members.end()) return false;
  tree.root = static_cast<std::uint32_t>(root - tree.members.begin());
  tree.parents = switch_tree(topology, nics, tree.root);
  return true;
}

wire::Contribution combine_in(const GroupTree& tree, const std::vector<wire::Contribution>& parts) {
  std::vector<std::vector<std::uint32_t>> children(tree.members.size());
  for (std::uint32_t place = 0; place < tree.members.size(); ++place) {
    if (place != tree.root) children[tree.parents[place]].push_back(place);
  }
  return value_at(tree, children, parts, tree.root);
}

CollectiveGroups::Piece CollectiveGroups::add_piece(EndpointId member, const wire::Command& command,
                                                    const std::byte* payload, std::uint32_t slot) {
  wire::GroupSettings settings{};
  std::memcpy(&settings, payload, sizeof settings);
  List& list = lists_[member];
  for (std::uint64_t at = sizeof settings; at < command.length; at += sizeof(std::uint32_t)) {
    EndpointId other;
    std::memcpy(&other.value, payload + at, sizeof other.value);
    list.push_back(other);
  }
  if (list.size() < command.member_count) return Piece::incomplete;
  const List whole = std::move(list);
  lists_.erase(member);
  const auto place = static_cast<std::size_t>(std::find(whole.begin(), whole.end(), member) - whole.begin());
  if (place == whole.size() || !is_distinct(whole)) return Piece::refused;

  const auto [found, is_new] = waiting_.try_emplace(whole);
  Forming& forming = found->second;
  if (is_new) {
    forming.members = whole;
    forming.slots.resize(whole.size());
    forming.missing = forming.untold = static_cast<std::uint32_t>(whole.size());
  }
  forming.slots[place] = slot;
  if (place == 0) forming.settings = settings;
  if (--forming.missing > 0) return Piece::waits;
  joins_.emplace(++last_join_, std::move(forming));
  waiting_.erase(found);
  return Piece::complete;
}

void CollectiveGroups::plant(Forming& join, const std::vector<NicId>& nics) {
  join.tree.members = join.members;
  join.tree.arming = Duration{join.settings.arming_ps};
  const bool allowed = join.settings.groups_max == 0 || groups_.size() < join.settings.groups_max;
  if (!allowed) {
    join.error = error_join_no_address;
  } else if (!make_tree(topology_, nics, roots_, join.tree)) {
    join.error = error_join_no_root;
  }
}

std::uint32_t CollectiveGroups::add_group(const GroupTree& tree, std::uint32_t number) {
  const bool is_new_root = roots_.insert(tree.members[tree.root]).second;
  DRYFLY_CHECK(is_new_root);
  Group& group = groups_[++last_group_];
  group.tree = tree;
  group.number = number;
  group.left.resize(tree.members.size());
  return last_group_;
}

CollectiveGroups::Group* CollectiveGroups::find(std::uint64_t key) {
  const auto found = groups_.find(static_cast<std::uint32_t>(key));
  return found == groups_.end() ? nullptr : &found->second;
}

CollectiveGroups::Reduction& CollectiveGroups::reduction(Group& group, std::uint64_t sequence) {
  const auto [found, is_new] = group.reductions.try_emplace(sequence);
  if (is_new) {
    found->second.parts.resize(group.tree.members.size());
    found->second.untold = static_cast<std::uint32_t>(group.tree.members.size());
  }
  return found->second;
}

bool CollectiveGroups::leave(Group& group, std::uint32_t member) {
  DRYFLY_CHECK(member < group.left.size() && !group.left[member]);
  group.left[member] = true;
  if (member == group.tree.root) roots_.erase(group.tree.members[member]);
  return std::find(group.left.begin(), group.left.end(), false) == group.left.end();
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> CollectiveGroups::forget_member(EndpointId member) {
  lists_.erase(member);
  std::erase_if(waiting_, [&](const auto& entry) {
    return std::find(entry.first.begin(), entry.first.end(), member) != entry.first.end();
  });
  std::vector<std::pair<std::uint32_t, std::uint32_t>> in;
  for (const auto& [key, group] : groups_) {
    const auto& members = group.tree.members;
    const auto place = static_cast<std::uint32_t>(std::find(members.begin(), members.end(), member) - members.begin());
    if (place < members.size() && !group.left[place]) in.emplace_back(key, place);
  }
  return in;
}

}  // namespace dryfly
