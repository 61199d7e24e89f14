// Shares against closed forms.
#include "core/network/flow/shares.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "core/unit/random.hpp"

namespace dryfly::flow {
namespace {

TEST_CASE("flows of one link share it by weight, and what a limited one leaves is the others'") {
  Shares shares;
  const std::uint32_t link = shares.add_link(12);
  const std::uint32_t one = shares.add_class(1);
  shares.cross(link);
  const std::uint32_t three = shares.add_class(1, 3);
  shares.cross(link);
  const std::uint32_t limited = shares.add_class(2, 1, 0.5);
  shares.cross(link);
  shares.solve();
  // 12 less 2 x 0.5, in four parts.
  CHECK(shares.rate(one) == doctest::Approx(11.0 / 4));
  CHECK(shares.rate(three) == doctest::Approx(33.0 / 4));
  CHECK(shares.rate(limited) == doctest::Approx(0.5));
  CHECK(shares.load(link) == doctest::Approx(12));
  CHECK(shares.full(link));
}

TEST_CASE("in a parking lot the long flow has its share of the tightest link, and each short one what is left") {
  Shares shares;
  std::vector<std::uint32_t> links;
  for (const double capacity : {10.0, 4.0, 6.0}) links.push_back(shares.add_link(capacity));
  const std::uint32_t through = shares.add_class(1);
  for (const std::uint32_t link : links) shares.cross(link);
  std::vector<std::uint32_t> on;
  for (const std::uint32_t link : links) {
    on.push_back(shares.add_class(1));
    shares.cross(link);
  }
  shares.solve();
  CHECK(shares.rate(through) == doctest::Approx(2));  // 4 / 2
  CHECK(shares.rate(on[0]) == doctest::Approx(8));
  CHECK(shares.rate(on[1]) == doctest::Approx(2));
  CHECK(shares.rate(on[2]) == doctest::Approx(4));
  CHECK_FALSE(shares.full(links[0]) == false);
}

TEST_CASE("a class of many flows has what each of them would have by itself") {
  const auto rates = [](bool one_by_one) {
    Shares shares;
    const std::uint32_t wide = shares.add_link(100);
    const std::uint32_t narrow = shares.add_link(7);
    for (int n = 0; n < (one_by_one ? 30 : 1); ++n) {
      shares.add_class(one_by_one ? 1 : 30);
      shares.cross(wide);
    }
    for (int n = 0; n < (one_by_one ? 10 : 1); ++n) {
      shares.add_class(one_by_one ? 1 : 10);
      shares.cross(wide);
      shares.cross(narrow, 0.5);
    }
    shares.solve();
    return std::pair{shares.rate(0), shares.rate(shares.classes() - 1)};
  };
  const auto folded = rates(false);
  CHECK(rates(true).first == doctest::Approx(folded.first));
  CHECK(rates(true).second == doctest::Approx(folded.second));
  // The ten have 7 over 10 x 0.5 each, and the thirty the rest of the wide link.
  CHECK(folded.second == doctest::Approx(1.4));
  CHECK(folded.first == doctest::Approx((100 - 14.0) / 30));
}

TEST_CASE("an all-to-all of a whole dragonfly is one class and its rate is that of the links between groups") {
  // 100 groups of 32 switches with 16 NICs each, two links between any two groups. A NIC sends to all others at once.
  const double groups = 100;
  const double nics = groups * 512;
  Shares shares;
  const std::uint32_t out = shares.add_link(1);
  const std::uint32_t between = shares.add_link(2);
  shares.add_class(nics * (nics - 1));
  shares.cross(out, 1 / nics);                               // each NIC has 1 / nics of them, one over the other
  shares.cross(between, 512.0 * 512 / (nics * (nics - 1)));  // a pair of groups has so many of them
  shares.solve();
  // 2 links for 512 x 512 flows, which is less than a NIC's 1 / (nics - 1).
  CHECK(shares.rate(0) == doctest::Approx(2.0 / (512 * 512)));
}

TEST_CASE("a flow fills its first way, then the next, and keeps what it has") {
  Shares shares;
  const std::uint32_t nic = shares.add_link(10);
  const std::uint32_t direct = shares.add_link(3);
  const std::uint32_t detour = shares.add_link(8);
  const std::uint32_t flows = shares.add_class(2);
  shares.cross(nic, 0.5);  // each has a NIC of its own, 5 for each would be 10 for both
  shares.add_way();
  shares.cross(direct);
  shares.add_way();
  shares.cross(detour, 2);
  shares.solve();
  // 3 over the direct link, then 4 over the detour, which costs it twice.
  CHECK(shares.rate(flows, 0) == doctest::Approx(1.5));
  CHECK(shares.rate(flows, 1) == doctest::Approx(2));
  CHECK(shares.rate(flows) == doctest::Approx(3.5));
  CHECK(shares.load(direct) == doctest::Approx(3));
  CHECK(shares.load(detour) == doctest::Approx(8));
}

TEST_CASE("on a slower way a flow takes less of what it meets there") {
  Shares shares;
  const std::uint32_t direct = shares.add_link(2);
  const std::uint32_t shared = shares.add_link(6);
  const std::uint32_t at_home = shares.add_class(1);
  shares.cross(shared);
  const std::uint32_t evades = shares.add_class(1, 1, 3);
  shares.add_way();
  shares.cross(direct);
  shares.add_way(0.5);
  shares.cross(shared);
  shares.solve();
  // Both have 2 when the direct link is full; the other 4 of the shared one would be 8/3 and 4/3, but 1 is all that
  // the second may have.
  CHECK(shares.rate(evades) == doctest::Approx(3));
  CHECK(shares.rate(at_home) == doctest::Approx(5));
}

TEST_CASE("a way over a link of no capacity is not begun, and who has no way left has nothing") {
  Shares shares;
  const std::uint32_t dead = shares.add_link(0);
  const std::uint32_t alive = shares.add_link(1);
  const std::uint32_t evades = shares.add_class(1);
  shares.add_way();
  shares.cross(dead);
  shares.add_way();
  shares.cross(alive);
  const std::uint32_t stuck = shares.add_class(1);
  shares.cross(dead);
  shares.solve();
  CHECK(shares.rate(evades) == doctest::Approx(1));
  CHECK(shares.rate(stuck) == 0);
}

// Of any problem: no link has more than its capacity, and a flow is slower than another only where it is bound: a full
// link on each of its ways, on which nobody of a higher level grows.
TEST_CASE("of random problems no link is above its capacity, and every flow has a bottleneck") {
  const RandomStream random{1, 0, Purpose::test};
  std::uint64_t draws = 0;
  for (int round = 0; round < 200; ++round) {
    Shares shares;
    const std::uint32_t links = 2 + random.below(draws++, 20);
    std::vector<double> capacity;
    for (std::uint32_t link = 0; link < links; ++link) {
      capacity.push_back(1 + random.below(draws++, 100));
      shares.add_link(capacity.back());
    }
    std::vector<std::vector<std::uint32_t>> crossed;
    for (std::uint32_t flows = 0; flows < 30; ++flows) {
      shares.add_class(1 + random.below(draws++, 4), 1);
      crossed.emplace_back();
      for (std::uint32_t n = 0; n < 3; ++n) {
        const std::uint32_t link = random.below(draws++, links);
        if (std::find(crossed.back().begin(), crossed.back().end(), link) != crossed.back().end()) continue;
        crossed.back().push_back(link);
        shares.cross(link, 0.5 + random.below(draws++, 3));
      }
    }
    shares.solve();
    for (std::uint32_t link = 0; link < links; ++link) CHECK(shares.load(link) <= capacity[link] * (1 + 1e-9));
    for (std::uint32_t flows = 0; flows < 30; ++flows) {
      bool bound = false;
      for (const std::uint32_t link : crossed[flows]) {
        double highest = 0;
        for (std::uint32_t other = 0; other < 30; ++other) {
          const auto& theirs = crossed[other];
          if (std::find(theirs.begin(), theirs.end(), link) != theirs.end())
            highest = std::max(highest, shares.rate(other));
        }
        bound = bound || (shares.full(link) && shares.rate(flows) >= highest * (1 - 1e-9));
      }
      CHECK(bound);
      CHECK(shares.rate(flows) > 0);
    }
  }
}

TEST_CASE("of many levels the lowest comes first, however often they are lowered and put off") {
  const RandomStream draws{7, 0, Purpose::workload};
  std::vector<double> known(100, Shares::unlimited);
  Levels levels;
  levels.clear(100);
  for (std::uint64_t n = 0; n < 20'000; ++n) {
    const std::uint32_t number = draws.below(3 * n, 100);
    const double level = draws.below(3 * n + 1, 50);  // many are equal
    if (draws.below(3 * n + 2, 2) == 0 || levels.empty()) {
      levels.lower(number, level);
      known[number] = std::min(known[number], level);
      continue;
    }
    const auto least = std::min_element(known.begin(), known.end());
    REQUIRE(levels.first().level == *least);
    REQUIRE(levels.first().number == least - known.begin());
    if (number < 50) {
      levels.take_first();
      *least = Shares::unlimited;
    } else {
      *least += level;
      levels.put_off_first(*least);
    }
  }
}

}  // namespace
}  // namespace dryfly::flow
