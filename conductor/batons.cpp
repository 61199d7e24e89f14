#include "conductor/batons.hpp"

#include <algorithm>
#include <utility>

namespace dryfly {

namespace {

constexpr std::uint32_t nobody = 0xffffffffU;
// Links of a chain of looks of which none is known to have written. MPICH's release and gather trees have at most three
// levels up to 64 ranks, and their inner ranks only set flags.
constexpr std::uint32_t chain_max = 3;

bool waits_for_something(const Rank& rank) {
  return rank.state == RankState::queued || rank.state == RankState::waiting || rank.state == RankState::ending;
}

}  // namespace

Batons::Batons(std::vector<Rank>& ranks, BoundHeap& bounds, Visibility visibility, bool in_use)
    : ranks_(ranks), bounds_(bounds), visibility_(std::move(visibility)), in_use_(in_use) {}

void Batons::seat(const Rank& rank) {
  if (rank.node.value >= nodes_.size()) nodes_.resize(rank.node.value + 1, Node{{}, nobody, never.ps, never.ps});
  nodes_[rank.node.value].ranks.push_back(rank.id.value);
}

void Batons::give_back(Rank& rank, std::uint64_t at, bool acted) {
  Node& node = nodes_[rank.node.value];
  open_.insert(rank.node.value);
  if (node.holder != rank.id.value) return;
  node.holder = nobody;
  if (acted) {
    ++writes_;
    rank.baton.chain = 0;
  }
  if (rank.baton.chain >= chain_max) return;
  for (const std::uint32_t index : node.ranks) {
    Rank& mate = ranks_[index];
    if (mate.id == rank.id || !waits_for_something(mate) || mate.state == RankState::queued) continue;
    const std::uint64_t instant = std::max(mate.gate.at_ps, at + visibility_(rank, mate).ps);
    if (instant < mate.baton.look_ps) {
      mate.baton.look_ps = instant;
      mate.baton.look_chain = rank.baton.chain + 1;
    } else {
      mate.baton.look_chain = std::min(mate.baton.look_chain, rank.baton.chain + 1);
    }
    if (mate.baton.look_ps < bounds_.bound(mate.id)) bounds_.set(mate.id, mate.baton.look_ps);
  }
}

void Batons::let_all_look() {
  for (Rank& rank : ranks_) {
    if (rank.state != RankState::waiting && rank.state != RankState::ending) continue;
    rank.baton.look_ps = rank.gate.at_ps;
    rank.baton.look_chain = chain_max;
    bounds_.set(rank.id, rank.gate.at_ps);
    open_.insert(rank.node.value);
  }
}

void Batons::forget(const Rank& rank) {
  if (!in_use_) return;
  Node& node = nodes_[rank.node.value];
  if (node.holder == rank.id.value) node.holder = nobody;
  open_.insert(rank.node.value);
}

bool Batons::may_come_before(const Rank& mate, const Rank& rank, std::uint64_t instant) const {
  if (mate.state != RankState::running && mate.state != RankState::polling) return false;
  std::uint64_t clock = bounds_.bound(mate.id);
  if (mate.state == RankState::running) clock = std::max(clock, wire::earliest_ps(*mate.page));
  return std::pair{clock, mate.id} < std::pair{instant, rank.id};
}

Rank* Batons::next(std::uint32_t number, std::uint64_t visible_until) {
  Node& node = nodes_[number];
  node.clock_needed = node.visible_needed = never.ps;
  Rank* first = nullptr;
  std::uint64_t instant = never.ps;
  for (const std::uint32_t index : node.ranks) {
    Rank& rank = ranks_[index];
    if (!waits_for_something(rank) || bounds_.bound(rank.id) >= instant) continue;
    first = &rank;
    instant = bounds_.bound(rank.id);
  }
  if (first == nullptr || node.holder != nobody) {
    open_.erase(number);
    return nullptr;
  }
  if (instant >= visible_until) {
    node.visible_needed = instant;
    return nullptr;
  }
  for (const std::uint32_t index : node.ranks) {
    if (!may_come_before(ranks_[index], *first, instant)) continue;
    node.clock_needed = instant + 1;
    return nullptr;
  }
  return first;
}

void Batons::take(Rank& rank) {
  Node& node = nodes_[rank.node.value];
  DRYFLY_CHECK(node.holder == nobody);
  node.holder = rank.id.value;
  open_.erase(rank.node.value);
  const bool looks = rank.state != RankState::queued && bounds_.bound(rank.id) == rank.baton.look_ps;
  rank.baton.chain = looks ? rank.baton.look_chain : 0;
  rank.baton.look_ps = never.ps;
  rank.baton.look_chain = chain_max;
  if (looks) ++looks_;
}

std::uint64_t Batons::clock_needed() const {
  std::uint64_t needed = never.ps;
  for (const std::uint32_t node : open_) needed = std::min(needed, nodes_[node].clock_needed);
  return needed;
}

std::uint64_t Batons::visible_needed() const {
  std::uint64_t needed = never.ps;
  for (const std::uint32_t node : open_) needed = std::min(needed, nodes_[node].visible_needed);
  return needed;
}

}  // namespace dryfly
