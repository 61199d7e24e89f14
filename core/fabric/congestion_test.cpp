#include "core/fabric/congestion.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "core/fabric/rig.hpp"

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
  std::map<std::uint32_t, int> delivered_of;  // by source, in the second half
  for (std::size_t i = 0; i + 1 < incast.rig.outcomes.size(); ++i) {
    const std::uint64_t at_ps = incast.rig.outcomes[i].delivered_ps;
    last = std::max(last, at_ps);
    if (at_ps > 400'000'000 && at_ps < 900'000'000) ++delivered_of[incast.rig.transfers[i].source.value];
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
  // 500 us are 31 messages of 4 packets for each of the 47.
  CHECK(delivered_of.size() == 47);
  CHECK(least >= 24);
  CHECK(most <= 40);
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

TEST_CASE("a hold keeps interval and window of a pair, lets the line go when it ends, and is forgotten when unused") {
  Transfers transfers;
  const std::uint32_t first = transfers.open(transfer_between(1, 2, 8, false), 0, Bytes{2'048});
  const std::uint32_t second = transfers.open(transfer_between(1, 2, 8, false), 0, Bytes{2'048});
  Holds holds{transfers, 1'000, 15'000};
  CHECK(!holds.holds({{1}, {2}, 0}, 0));
  // Two, and 15,000 in intervals of 10,000: three packets may be outstanding. Three are.
  holds.begin({{1}, {2}, 0}, 3);
  CHECK(holds.tell({{1}, {2}, 0}, 10'000, 0) == never.ps);
  CHECK(holds.holds({{1}, {2}, 0}, 0));
  CHECK(!holds.holds({{1}, {3}, 0}, 0));
  holds.acknowledged({{1}, {2}, 0});
  CHECK(!holds.holds({{1}, {2}, 0}, 0));
  CHECK(holds.sent({{1}, {2}, 0}, 1'000, 0) == never.ps);
  holds.acknowledged({{1}, {2}, 0});
  CHECK(holds.holds({{1}, {2}, 0}, 9'999));
  CHECK(holds.park(first, 0) == 10'000);
  CHECK(holds.park(second, 0) == never.ps);
  const Holds::Over over = holds.over({{1}, {2}, 0}, 10'000);
  CHECK(over.transfer == first);
  // Half a packet pays half the interval; but now three are outstanding, and the next word of the pair lets go.
  CHECK(holds.sent({{1}, {2}, 0}, 500, 10'000) == never.ps);
  holds.acknowledged({{1}, {2}, 0});
  CHECK(holds.tell({{1}, {2}, 0}, 10'000, 12'000) == 15'000);
  CHECK(holds.end({{1}, {2}, 0}) == second);
  CHECK(!holds.any());
  holds.begin({{1}, {2}, 0}, 0);
  CHECK(!holds.holds({{1}, {2}, 0}, 1'000'000'000));
  CHECK(!holds.any());
}

}  // namespace
}  // namespace dryfly::fabric
