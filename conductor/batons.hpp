// Who may be inside MPI on a node whose ranks talk through memory (`--on-node shared`).
//
// What a rank finds in memory depends on who has written before, so on each node one rank at a time is inside MPI: the
// one that holds the node's baton. It goes to the rank with the earliest instant, the lower number among equals, and
// only when nobody on the node can still come before it: neither a rank that computes with an earlier clock, nor one
// that waits and may yet get an event from the network. A rank gives it back when it leaves MPI or has to wait.
//
// Whoever gives it back may have written something that a waiting rank of the node looks for. So each of these looks
// again, a latency later that depends on where the two are. Memory cannot be asked who wrote to it. A rank
// that has only looked may still have set a flag for the next one, so the others look again after it, but such chains
// of looks end after a few links: otherwise waiting ranks would keep one another looking for ever.
//
// Models docs/model/on-node.md#nearness.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "conductor/bound_heap.hpp"
#include "conductor/rank.hpp"

namespace dryfly {

class Batons {
 public:
  // What a rank has written another of its node sees so much later.
  using Visibility = std::function<Duration(const Rank& writer, const Rank& reader)>;
  // `in_use`: ranks of a node talk through memory. Otherwise only ranks_of() means anything.
  Batons(std::vector<Rank>& ranks, BoundHeap& bounds, Visibility visibility, bool in_use);

  bool are_in_use() const { return in_use_; }
  // From the start to the end of virtual time the ranks pass the baton, unless one is in a call that needs none.
  void start() { is_passed_ = in_use_; }
  void end() { is_passed_ = false; }
  bool passes_baton(const Rank& rank) const { return is_passed_ && !rank.gate.outside && !rank.gate.only_news; }

  void seat(const Rank& rank);  // once for each rank, in order
  const std::vector<std::uint32_t>& ranks_of(NodeId node) const { return nodes_[node.value].ranks; }

  // Something has come that the rank waits for.
  void waits(const Rank& rank) { open_.insert(rank.node.value); }
  // Whether the rank has left MPI since the last look; it gives its baton back then.
  void look(Rank& rank) {
    const std::uint32_t ends = rank.page->baton_end.count.load(std::memory_order_acquire);
    if (ends == rank.baton.ends) return;
    rank.baton.ends = ends;
    give_back(rank, rank.page->baton_end.at_ps, true);
  }
  // The rank has left MPI, waits, or wants the baton again, from this instant on. `acted`: it may have written. One
  // that does not have the baton has nothing to give back.
  void give_back(Rank& rank, std::uint64_t at, bool acted);
  // Everything stands still: each rank of the run that waits looks once more.
  void let_all_look();
  void forget(const Rank& rank);

  // The nodes whose baton nobody holds while somebody waits for it.
  const std::set<std::uint32_t>& open_nodes() const { return open_; }
  // The rank that gets it next; null if that is not certain yet. `visible_until`: what ranks see before is known.
  Rank* next(std::uint32_t node, std::uint64_t visible_until);
  void take(Rank& rank);
  // The bound that some rank of the run has to reach before more can be said, in clocks and in what is visible.
  std::uint64_t clock_needed() const;
  std::uint64_t visible_needed() const;

  std::uint64_t looks() const { return looks_; }  // after somebody else had the baton
  std::uint64_t writes() const { return writes_; }

 private:
  struct Node {
    std::vector<std::uint32_t> ranks;
    std::uint32_t holder;
    std::uint64_t clock_needed;
    std::uint64_t visible_needed;
  };
  bool may_come_before(const Rank& mate, const Rank& rank, std::uint64_t instant) const;

  std::vector<Rank>& ranks_;
  BoundHeap& bounds_;
  Visibility visibility_;
  bool in_use_;
  bool is_passed_ = false;
  std::vector<Node> nodes_;  // by node number
  std::set<std::uint32_t> open_;
  std::uint64_t looks_ = 0;
  std::uint64_t writes_ = 0;
};

}  // namespace dryfly
