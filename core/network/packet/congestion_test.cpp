#include "core/network/packet/congestion.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "core/network/packet/under_way.hpp"
#include "core/unit/random.hpp"
#include "testing/rig.hpp"

namespace dryfly::fabric {
namespace {

SampleMachine machine(const std::string& management) {
  SampleMachine result;
  result.groups = 5;
  result.nodes = 16;
  result.management = management;
  return result;
}

// 48 NICs of four groups send to NIC 0; NIC 63 sends to NIC 1, which hangs on the same switch.
struct Incast {
  explicit Incast(const std::string& management) : rig(machine(management)) {
    for (std::uint32_t source = 16; source < 64; ++source) {
      for (int i = 0; source != 63 && i < 64; ++i) rig.submit_at(0, transfer_between(source, 0, 1 << 13));
    }
    rig.submit_at(victim_at_ps, transfer_between(63, 1, 1 << 20, false));
    rig.engine.run(never);
  }
  double victim_us() const { return static_cast<double>(rig.outcomes.back().delivered_ps - victim_at_ps) / 1e6; }
  // What was sent before anybody knew, up to 47 windows of 64 packets, takes 254 us to leave the fabric.
  static constexpr std::uint64_t victim_at_ps = 400'000'000;
  Rig rig;
};

TEST_CASE("sources of a hot end-point are held back to equal shares, and the end-point is kept busy") {
  Incast incast{"on"};
  std::uint64_t last = 0;
  std::map<std::uint32_t, std::uint64_t> through_of;  // by source: when it has sent all it has
  for (std::size_t i = 0; i + 1 < incast.rig.outcomes.size(); ++i) {
    const std::uint64_t at_ps = incast.rig.outcomes[i].delivered_ps;
    last = std::max(last, at_ps);
    std::uint64_t& through = through_of[incast.rig.transfers[i].source.value];
    through = std::max(through, at_ps);
  }
  std::uint64_t first_through = last;
  for (const auto& [source, at_ps] : through_of) first_through = std::min(first_through, at_ps);
  // From when the first burst has left the fabric until a source has nothing more to send.
  std::map<std::uint32_t, int> delivered_of;
  for (std::size_t i = 0; i + 1 < incast.rig.outcomes.size(); ++i) {
    const std::uint64_t at_ps = incast.rig.outcomes[i].delivered_ps;
    if (at_ps > Incast::victim_at_ps && at_ps < first_through) ++delivered_of[incast.rig.transfers[i].source.value];
  }
  int least = 1'000;
  int most = 0;
  for (const auto& [source, count] : delivered_of) {
    least = std::min(least, count);
    most = std::max(most, count);
  }
  // 47 x 256 packets of 84,480 ps: 1,016 us if the link is never idle.
  CHECK(last >= 1'016'000'000);
  CHECK(last <= 1'060'000'000);
  const double fair = static_cast<double>(first_through - Incast::victim_at_ps) / (47 * 4 * 84'480.0);
  CHECK(delivered_of.size() == 47);
  CHECK(least >= 0.75 * fair);
  // A source that begins anew sends a window of 64 packets before it is told: 16 messages.
  CHECK(most <= fair + 16);
  CHECK(incast.rig.network.at_rest());
  CHECK(incast.rig.network.credit_bytes_outstanding() == 0);
}

// 1 MiB takes 43 us alone.
TEST_CASE("a victim beside a hot end-point has its bandwidth with congestion management, and loses it without") {
  CHECK(Incast{"on"}.victim_us() < 46);
  CHECK(Incast{"off"}.victim_us() > 90);
}

TEST_CASE("two sources of one target are no congestion that costs anything") {
  Rig rig{machine("on")};
  rig.submit_at(0, transfer_between(2, 0, 1 << 20, false));
  rig.submit_at(0, transfer_between(5, 0, 1 << 20, false));
  rig.engine.run(never);
  // 1,024 packets of 84,480 ps are 86.5 us.
  CHECK(std::max(rig.outcomes[0].delivered_ps, rig.outcomes[1].delivered_ps) < 90'000'000);
}

TEST_CASE("what is under way is found by target after any order of beginnings and ends") {
  UnderWay under_way;
  UnderWay::List list;
  std::vector<std::uint32_t> place_of(200, none);
  std::vector<std::uint32_t> target_of(200);
  const RandomStream random{1, 0, Purpose::test};
  for (std::uint64_t step = 0; step < 20'000; ++step) {
    const std::uint32_t transfer = random.below(2 * step, 200);
    if (place_of[transfer] == none) {
      target_of[transfer] = random.below(2 * step + 1, 5);
      place_of[transfer] = under_way.add(list, {target_of[transfer], transfer});
    } else {
      const std::uint32_t place = place_of[transfer];
      place_of[under_way.remove(list, place)] = place;
      place_of[transfer] = none;
    }
    if (step % 97 != 0) continue;
    std::vector<int> seen(200);
    for (std::uint32_t target = 0; target < 5; ++target) {
      under_way.visit(list, target, [&](std::uint32_t one) { seen[one] += target_of[one] == target ? 1 : 2; });
    }
    for (std::uint32_t one = 0; one < 200; ++one) REQUIRE(seen[one] == (place_of[one] == none ? 0 : 1));
  }
}

TEST_CASE("a hold keeps interval and window of a pair, lets the line go when it ends, and is forgotten when unused") {
  Transfers transfers;
  const std::uint32_t first = transfers.open(transfer_between(1, 2, 8, false), 0, Bytes{2'048});
  const std::uint32_t second = transfers.open(transfer_between(1, 2, 8, false), 0, Bytes{2'048});
  Holds holds{transfers, 1'000, 15'000};
  const Pair pair{{1}, {2}, 0};
  CHECK(holds.find(pair) == nullptr);
  // Two, and 15,000 in intervals of 10,000: three packets may be outstanding. Three are.
  Holds::Hold& hold = holds.begin(pair, 3);
  CHECK(holds.find(pair) == &hold);
  CHECK(holds.find({{1}, {3}, 0}) == nullptr);
  CHECK(holds.tell(hold, 10'000, 0) == never.ps);
  CHECK(!holds.may_send(hold, 0));
  Holds::acknowledged(hold);
  CHECK(holds.may_send(hold, 0));
  CHECK(holds.sent(hold, 1'000, 0) == never.ps);
  Holds::acknowledged(hold);
  CHECK(!holds.may_send(hold, 9'999));
  CHECK(holds.park(hold, first, 0) == 10'000);
  CHECK(holds.park(hold, second, 0) == never.ps);
  const Holds::Over over = holds.over(pair, 10'000);
  CHECK(over.transfer == first);
  // Half a packet pays half the interval; but now three are outstanding, and the next word of the pair lets go.
  CHECK(holds.sent(hold, 500, 10'000) == never.ps);
  Holds::acknowledged(hold);
  CHECK(holds.tell(hold, 10'000, 12'000) == 15'000);
  CHECK(!holds.is_stale(hold, 1'000'000'000));
  CHECK(holds.end(hold) == second);
  CHECK(!holds.any());
  const Holds::Hold& unused = holds.begin(pair, 0);
  CHECK(!holds.is_stale(unused, 20'000'000));
  CHECK(holds.is_stale(unused, 20'000'001));
}

}  // namespace
}  // namespace dryfly::fabric
