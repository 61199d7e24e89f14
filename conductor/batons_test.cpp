#include "conductor/batons.hpp"

#include <doctest/doctest.h>

#include <array>

namespace dryfly {
namespace {

constexpr std::uint64_t visibility_ps = 300;
constexpr std::uint64_t all_known = 1'000'000;

// Three ranks on node 0 and one on node 1. All compute, with clock 0.
struct Nodes {
  Nodes()
      : ranks(4),
        bounds(4),
        batons(ranks, bounds, [](const Rank&, const Rank&) { return Duration{visibility_ps}; }, true) {
    for (std::uint32_t index = 0; index < 4; ++index) {
      Rank& rank = ranks[index];
      rank.id = RankId{index};
      rank.page = &pages[index];
      rank.node = NodeId{index == 3 ? 1U : 0U};
      rank.state = RankState::running;
      bounds.set(rank.id, 0);
      batons.seat(rank);
    }
  }
  void put(std::uint32_t index, RankState state, std::uint64_t at) {
    Rank& rank = ranks[index];
    rank.state = state;
    rank.gate.at_ps = at;
    bounds.set(rank.id, at);
    batons.waits(rank);
  }
  void wait_for_ever(std::uint32_t index, std::uint64_t since) {
    put(index, RankState::waiting, since);
    bounds.set(ranks[index].id, never.ps);
  }
  void compute_until(std::uint32_t index, std::uint64_t clock) { pages[index].clock_ps.store(clock); }
  void take(std::uint32_t index) {
    batons.take(ranks[index]);
    ranks[index].state = RankState::running;
  }

  std::array<wire::RankPage, 4> pages{};
  std::vector<Rank> ranks;
  BoundHeap bounds;
  Batons batons;
};

TEST_CASE("the earliest instant gets the baton, and the lower rank of equal ones") {
  Nodes nodes;
  nodes.put(0, RankState::queued, 50);
  nodes.put(1, RankState::queued, 40);
  nodes.put(2, RankState::queued, 40);
  CHECK(nodes.batons.next(0, all_known) == &nodes.ranks[1]);
}

TEST_CASE("a rank that computes with an earlier clock is waited for") {
  Nodes nodes;
  nodes.put(1, RankState::queued, 40);
  nodes.compute_until(0, 100);
  nodes.compute_until(2, 39);
  CHECK(nodes.batons.next(0, all_known) == nullptr);
  CHECK(nodes.batons.clock_needed() == 41);
  nodes.compute_until(2, 40);  // now it may only come after rank 1
  CHECK(nodes.batons.next(0, all_known) == &nodes.ranks[1]);
}

TEST_CASE("nobody gets the baton before it is known what the network brings until then") {
  Nodes nodes;
  for (const std::uint32_t index : {0U, 2U}) nodes.wait_for_ever(index, 0);
  nodes.put(1, RankState::queued, 40);
  CHECK(nodes.batons.next(0, 40) == nullptr);
  CHECK(nodes.batons.visible_needed() == 40);
  CHECK(nodes.batons.next(0, 41) == &nodes.ranks[1]);
}

TEST_CASE("who waits looks again one latency after another rank of its node has left MPI") {
  Nodes nodes;
  nodes.wait_for_ever(0, 10);
  nodes.wait_for_ever(3, 10);
  nodes.compute_until(2, 5000);
  nodes.put(1, RankState::queued, 40);
  REQUIRE(nodes.batons.next(0, all_known) == &nodes.ranks[1]);
  nodes.take(1);
  CHECK(nodes.batons.next(0, all_known) == nullptr);  // rank 1 has it
  nodes.batons.give_back(nodes.ranks[1], 60, true);
  nodes.compute_until(1, 5000);
  CHECK(nodes.bounds.bound(RankId{0}) == 60 + visibility_ps);
  CHECK(nodes.bounds.bound(RankId{3}) == never.ps);  // on another node
  CHECK(nodes.batons.next(0, all_known) == &nodes.ranks[0]);
}

TEST_CASE("ranks that only look do not keep one another looking for ever") {
  Nodes nodes;
  nodes.compute_until(2, 1'000'000);
  nodes.wait_for_ever(0, 0);
  nodes.put(1, RankState::queued, 0);
  REQUIRE(nodes.batons.next(0, all_known) == &nodes.ranks[1]);
  nodes.take(1);
  std::uint32_t looks = 0;
  nodes.wait_for_ever(1, 0);
  nodes.batons.give_back(nodes.ranks[1], 0, true);
  while (Rank* rank = nodes.batons.next(0, all_known)) {
    const std::uint64_t at = nodes.bounds.bound(rank->id);
    nodes.take(rank->id.value);
    nodes.wait_for_ever(rank->id.value, at);
    nodes.batons.give_back(*rank, at, false);
    REQUIRE(++looks < 10);
  }
  CHECK(looks == 3);
}

TEST_CASE("a process that has ended holds no baton") {
  Nodes nodes;
  nodes.put(0, RankState::queued, 0);
  REQUIRE(nodes.batons.next(0, all_known) == &nodes.ranks[0]);
  nodes.take(0);
  nodes.ranks[0].state = RankState::gone;
  nodes.batons.forget(nodes.ranks[0]);
  nodes.put(1, RankState::queued, 7);
  nodes.compute_until(2, 8);
  CHECK(nodes.batons.next(0, all_known) == &nodes.ranks[1]);
}

}  // namespace
}  // namespace dryfly
