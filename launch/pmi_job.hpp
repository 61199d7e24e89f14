// What the ranks of a job leave with their PMI server for one another, and where they wait for one another: the same
// in both versions of the protocol (launch/pmi.hpp).
//
// Left out: who spawned the job, and jobs that connect to each other.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace dryfly::launch {

// The value of the key PMI_process_mapping, "(vector,(first node,nodes,ranks per node),...)", which lists the node
// of rank 0, 1, ... in runs. Nodes are renumbered by first appearance, as MPICH does too: most placements then need
// a single run.
std::string process_mapping(const std::vector<int>& node_of_rank);

class PmiJob {
 public:
  // `name` has to differ between jobs that run at one time: MPICH derives shared names from it.
  PmiJob(std::string name, std::vector<int> node_of_rank);

  const std::string& name() const { return name_; }
  std::size_t size() const { return node_of_rank_.size(); }
  const std::string& mapping() const { return *find("PMI_process_mapping"); }

  // False if the key is none that a rank may set.
  bool put(std::string_view key, std::string_view value);
  const std::string* find(std::string_view key) const;  // null: nobody has put it

  // What is put on a node is found by the ranks of that node only.
  bool put_on_node(int rank, std::string_view key, std::string_view value);
  const std::string* find_on_node(int rank, std::string_view key) const;
  bool same_node(int rank, int other) const { return node_of(rank) == node_of(other); }

  bool publish(std::string_view service, std::string_view port);  // false: the name is taken
  bool withdraw(std::string_view service);                        // false: there is no such name
  const std::string* port_of(std::string_view service) const;

  // A group is WORLD, NODE, or ranks separated by commas, with an optional :TAG. Gives the ranks whose wait ends, none
  // as long as a member is missing; nothing if it is no group, or none of the rank's.
  std::optional<std::vector<int>> enter_barrier(int rank, std::string_view group);

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  using Texts = std::unordered_map<std::string, std::string, TextHash, std::equal_to<>>;
  // How often each member waits; the barrier opens when every member does. A member may be ahead by several rounds
  // where its threads use one barrier.
  struct Barrier {
    std::map<int, int> waits_of_member;
    std::size_t waiting = 0;
  };

  int node_of(int rank) const { return node_of_rank_[static_cast<std::size_t>(rank)]; }
  std::optional<Barrier> make_barrier(std::string_view group) const;

  std::string name_;
  std::vector<int> node_of_rank_;
  Texts values_;
  Texts services_;
  std::map<int, Texts> of_node_;
  std::map<std::string, Barrier, std::less<>> barriers_;
};

}  // namespace dryfly::launch
