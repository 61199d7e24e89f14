#include "core/nic/reductions.hpp"

#include <algorithm>
#include <tuple>

#include "testing/test_stand.hpp"

namespace dryfly::nic {

namespace {

// Five end-points on five nodes: 0 is the root; 1 on its switch; 2 and 4 on another, 2 before it; 3 alone beyond.
struct Stand : TestStand {
  Stand() : TestStand(figures()) {
    for (std::uint32_t i = 0; i < 5; ++i) nics.open_endpoint(EndpointId{10 + i}, NicId{10 + i}, NodeId{10 + i});
  }
  static NicSpec figures() {
    NicSpec spec = round_figures();
    spec.reduction_latency = {50 * ns};
    return spec;
  }
  static GroupTree tree() {
    GroupTree tree;
    for (std::uint32_t i = 0; i < 5; ++i) tree.members.push_back(EndpointId{10 + i});
    tree.parents = {0, 0, 0, 0, 2};
    tree.arming = {1'000'000 * ns};
    return tree;
  }
  void joined(EndpointId, Token, std::uint32_t member, int error) override {
    told.emplace_back(engine.now().ps / ns, member, error);
  }
  void reduced(EndpointId, Token part, int error) override { told.emplace_back(engine.now().ps / ns, part, error); }
  // Its CPU works at once.
  void needs_processor(EndpointId at, const Work& work) override {
    asked.push_back(at.value);
    this->at(engine.now().ps, [this, at, work] { nics.worked(at, work); });
  }
  void contribute(std::uint32_t group, std::uint64_t sequence, std::uint32_t member) {
    nics.contribute({.group = group, .member = member, .sequence = sequence, .token = member});
  }
  void all_contribute(std::uint32_t group, std::uint64_t sequence) {
    for (std::uint32_t member = 0; member < 5; ++member) contribute(group, sequence, member);
  }
  using Told = std::vector<std::tuple<std::uint64_t, std::uint64_t, int>>;
  Told told;
  std::vector<std::uint32_t> asked;
};

}  // namespace

TEST_CASE("a reduction goes up its tree and down again; only the CPU at the root takes part when the tree is armed") {
  Stand stand;
  const std::uint32_t group = stand.nics.open_group(Stand::tree());
  stand.all_contribute(group, 0);
  stand.run();
  const std::uint64_t begin = stand.engine.now().ps;
  stand.told.clear();
  stand.asked.clear();
  for (std::uint64_t sequence = 1; sequence < 8; ++sequence) stand.all_contribute(group, sequence);
  stand.run();  // each of the eight numbers has been armed
  stand.told.clear();
  stand.asked.clear();
  const std::uint64_t now = stand.engine.now().ps / ns;
  CHECK(now * ns > begin);
  stand.all_contribute(group, 8);
  stand.run();
  // 4: ready at 100, at 2 at 1,100, taken in at 1,150; at the root at 2,150, taken in at 2,200. Down: ready at 2,300,
  // at 1, 2, 3 at 3,300, in memory at 3,500; at 4 at 4,300, in memory at 4,500.
  std::sort(stand.told.begin(), stand.told.end());
  CHECK(stand.asked == std::vector<std::uint32_t>{10});
  CHECK(
      stand.told ==
      Stand::Told{{now + 2200, 0, 0}, {now + 3500, 1, 0}, {now + 3500, 2, 0}, {now + 3500, 3, 0}, {now + 4500, 4, 0}});
  CHECK(stand.nics.collective_totals().reductions == 9);
  CHECK(stand.nics.collective_totals().armings == 8);
}

TEST_CASE("before the engines are armed the others wait for the root's packet, and their CPUs give their parts") {
  Stand stand;
  const std::uint32_t group = stand.nics.open_group(Stand::tree());
  for (std::uint32_t member = 1; member < 5; ++member) stand.contribute(group, 0, member);
  stand.run();
  CHECK(stand.network.submitted.empty());
  const std::uint64_t now = stand.engine.now().ps / ns;
  stand.contribute(group, 0, 0);
  stand.run();
  // The arming packet: ready at 100, at 4 at 2,100, in memory at 2,300; its part is at the root 100 + 1,000 + 50 +
  // 1,000 + 50 later, at 4,500.
  std::sort(stand.asked.begin(), stand.asked.begin() + 3);  // 1, 2 and 3 at one instant
  CHECK(stand.asked == std::vector<std::uint32_t>{11, 12, 13, 14, 10});
  CHECK(stand.told.front() == std::tuple(now + 4500, std::uint64_t{0}, 0));
  CHECK(stand.told.size() == 5);
}

TEST_CASE("a member that comes late delays the result by as much, and others hear of reductions in their order") {
  Stand stand;
  const std::uint32_t group = stand.nics.open_group(Stand::tree());
  for (std::uint32_t member = 0; member < 4; ++member) stand.contribute(group, 0, member);
  for (std::uint32_t member = 0; member < 4; ++member) stand.contribute(group, 1, member);
  stand.run();
  CHECK(stand.told.empty());
  CHECK(stand.nics.at_rest());
  stand.contribute(group, 0, 4);
  stand.contribute(group, 1, 4);
  stand.run();
  CHECK(stand.told.size() == 10);
  CHECK(stand.nics.collective_totals().reductions == 2);
}

TEST_CASE("forming a group takes three passes of a tree whose radix is the caller's") {
  const auto time_of = [](std::uint32_t radix) {
    Stand stand;
    stand.nics.join({.members = Stand::tree().members, .radix = radix, .step = {500 * ns}, .token = 7});
    stand.run();
    CHECK(stand.told.size() == 5);
    return std::get<0>(stand.told.back());
  };
  // Radix 4: one row below the first place: up and down, each 1,000 and a step of 500, three times. Radix 2: two rows.
  CHECK(time_of(4) == 3 * 2 * 1500);
  CHECK(time_of(2) == 3 * 4 * 1500);
}

}  // namespace dryfly::nic
