// Collective groups, of end-points that reduce together: who waits for whom to join, the trees, and the values under
// way.
//
// Models what the fabric manager and the switches' reduction engines do (docs/model/reductions.md#forming-a-group).
// A group is formed when each of its members has asked for the same list. The tree: members on one switch send to
// the first of them, these to the first of their group of switches, those to the root. The root is the first member
// whose end-point is not the root of another group, as an end-point can be that of one at most. Values are combined
// in the tree's order, whatever came first: a place's own, then its children in the order of the list. The real
// engines combine in the order of arrival.
//
// Left out: how the fabric manager chooses its trees and roots (not published), and the delays of asking it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/nic/nic.hpp"
#include "core/topology/dragonfly.hpp"
#include "wire/reduction.hpp"
#include "wire/wire.hpp"

namespace dryfly {

// Of libfabric's cxi provider (rdma/fi_cxi_ext.h): part of its ABI.
inline constexpr int error_join_no_address = 2048;  // FI_CXI_ERRNO_JOIN_MCAST_INUSE: the job's limit is reached, too
inline constexpr int error_join_no_root = 2049;     // FI_CXI_ERRNO_JOIN_HWROOT_INUSE
inline constexpr int error_join_other = 2056;       // FI_CXI_ERRNO_JOIN_OTHER

// The tree of these members, with the first as root that is not in `roots`; false: there is none.
bool make_tree(const Dragonfly& topology, const std::vector<NicId>& nics, const std::set<EndpointId>& roots,
               GroupTree& tree);
// All of a tree's contributions.
wire::Contribution combine_in(const GroupTree& tree, const std::vector<wire::Contribution>& parts);

class CollectiveGroups {
 public:
  explicit CollectiveGroups(const Dragonfly& topology) : topology_(topology) {}

  struct Forming {
    std::vector<EndpointId> members;
    wire::GroupSettings settings{};    // those of the first member
    std::vector<std::uint32_t> slots;  // of each member's command
    std::uint32_t missing = 0;
    std::uint32_t untold = 0;
    int error = 0;  // nothing comes of it, and this is why
    std::uint32_t group = 0;
    GroupTree tree;
  };
  struct Reduction {
    std::vector<wire::Contribution> parts;
    std::uint32_t untold = 0;
    bool combined = false;
    wire::Contribution all{};
  };
  struct Group {
    GroupTree tree;
    std::uint32_t number = 0;  // of the NICs'
    std::vector<bool> left;    // by member
    std::map<std::uint64_t, Reduction> reductions;

    bool has(std::uint32_t member, EndpointId endpoint) const {
      return member < tree.members.size() && tree.members[member] == endpoint && !left[member];
    }
  };

  enum class Piece : std::uint8_t {
    incomplete,  // more of the list is to come
    waits,       // the list is complete, other members are missing
    complete,    // all are here: last_join()
    refused,     // a list in which the member is not, or in which one is twice
  };
  // Of a member's list. `slot`: of the command that has the last piece.
  Piece add_piece(EndpointId member, const wire::Command& command, const std::byte* payload, std::uint32_t slot);
  Token last_join() const { return last_join_; }
  Forming& forming(Token join) { return joins_.at(join); }
  void forget(Token join) { joins_.erase(join); }
  // Its tree, or why there is none.
  void plant(Forming& join, const std::vector<NicId>& nics);
  std::uint32_t add_group(const GroupTree& tree, std::uint32_t number);

  Group* find(std::uint64_t key);
  Reduction& reduction(Group& group, std::uint64_t sequence);
  // A member leaves. True when nobody is left, and the group can be erased.
  bool leave(Group& group, std::uint32_t member);
  void erase(std::uint64_t key) { groups_.erase(static_cast<std::uint32_t>(key)); }
  // An end-point is gone: what it has begun to join comes to nothing. The groups in which it is: key and member.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> forget_member(EndpointId member);

 private:
  using List = std::vector<EndpointId>;

  const Dragonfly& topology_;
  std::map<EndpointId, List> lists_;  // of which only pieces have come
  std::map<List, Forming> waiting_;   // by their members
  std::map<Token, Forming> joins_;    // every member has come
  std::map<std::uint32_t, Group> groups_;
  std::set<EndpointId> roots_;
  Token last_join_ = 0;
  std::uint32_t last_group_ = 0;
};

}  // namespace dryfly
