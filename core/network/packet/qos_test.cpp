#include "core/network/fabric/qos.hpp"

#include <doctest/doctest.h>

#include "testing/rig.hpp"

namespace dryfly::fabric {
namespace {

QosProfile profile_of(const std::string& text) { return QosProfile::read(Spec::parse(text), Duration{84'480}); }

TEST_CASE("classes that all want the link get it in proportion to their shares") {
  const QosProfile profile = profile_of(standard_profile());
  Arbiter arbiter;
  std::array<int, 4> served{};
  for (std::uint64_t now_ps = 0; served[1] + served[2] + served[3] < 900; now_ps += 84'480) {
    const std::uint32_t chosen = arbiter.choose(profile, 0b1110, now_ps);
    ++served[chosen];
    arbiter.serve(profile, chosen, profile.classes[chosen].fabric_ppm, 84'480, now_ps);
  }
  // 20 : 50 : 20 of 90.
  CHECK(std::abs(served[1] - 200) <= 1);
  CHECK(std::abs(served[2] - 500) <= 1);
  CHECK(std::abs(served[3] - 200) <= 1);
}

TEST_CASE("a class that was silent has no claim on what the others had meanwhile") {
  const QosProfile profile = profile_of(standard_profile());
  Arbiter arbiter;
  for (int i = 0; i < 1'000; ++i) arbiter.serve(profile, 2, 500'000, 84'480, 0);
  int bulk_in_a_row = 0;
  while (arbiter.choose(profile, 0b0110, 0) == 1) {
    arbiter.serve(profile, 1, 200'000, 84'480, 0);
    ++bulk_in_a_row;
  }
  CHECK(bulk_in_a_row <= 1);
}

TEST_CASE("priority goes first, but not above its ceiling") {
  const QosProfile profile = profile_of(standard_profile());
  Arbiter arbiter;
  int low_latency = 0;
  constexpr int turns = 10'000;
  for (int turn = 0; turn < turns; ++turn) {
    const std::uint64_t now_ps = static_cast<std::uint64_t>(turn) * 84'480;
    const std::uint32_t chosen = arbiter.choose(profile, 0b0101, now_ps);
    if (chosen == 0) ++low_latency;
    arbiter.serve(profile, chosen, profile.classes[chosen].fabric_ppm, 84'480, now_ps);
  }
  // 5 % of the turns, and the four frames of its bucket and the one that opens it.
  CHECK(low_latency >= turns / 20);
  CHECK(low_latency <= turns / 20 + 5);
}

TEST_CASE("a class that the profile lacks travels as the default, and every class is counted") {
  Rig rig{SampleMachine{}};
  for (const TrafficClass asked : {TrafficClass::dedicated, TrafficClass::low_latency, TrafficClass::best_effort}) {
    Transfer transfer = transfer_between(0, 9, 10'000);
    transfer.traffic_class = asked;
    rig.submit_at(0, transfer);
  }
  rig.engine.run(never);
  const NetworkTotals totals = rig.network.totals();
  CHECK(totals.bytes_of[0] == 10'000);
  CHECK(totals.bytes_of[2] == 20'000);
  CHECK(totals.pieces_of[0] + totals.pieces_of[2] == totals.pieces);
  CHECK(rig.network.credit_bytes_outstanding() == 0);
}

TEST_CASE("shares that cannot be are refused") {
  const auto with = [](const std::string& last) {
    return "fabric.qos.classes 2\nfabric.qos.default best_effort\n" + profile_class(0, "best_effort", 60, 100, 50) +
           last;
  };
  CHECK_NOTHROW(profile_of(with(profile_class(1, "bulk_data", 40, 100, 50))));
  CHECK_THROWS_AS(profile_of(with(profile_class(1, "bulk_data", 41, 100, 50))), SpecError);
  CHECK_THROWS_AS(profile_of(with(profile_class(1, "bulk_data", 40, 100, 51))), SpecError);
  CHECK_THROWS_AS(profile_of(with(profile_class(1, "bulk_data", 40, 39, 50))), SpecError);
  CHECK_THROWS_AS(profile_of(with(profile_class(1, "bulky", 40, 100, 50))), SpecError);
}

}  // namespace
}  // namespace dryfly::fabric
