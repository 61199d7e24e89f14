#include "oracle/unloaded.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "testing/rig.hpp"

namespace dryfly::fabric {
namespace {

oracle::Fabric oracle_of(const SampleMachine& machine) {
  oracle::Fabric fabric;
  fabric.rate_bytes_per_s = machine.rate_bytes_per_s;
  fabric.edge_flight_ps = machine.edge_flight_ps;
  fabric.local_flight_ps = machine.local_flight_ps;
  fabric.global_flight_ps = machine.global_flight_ps;
  fabric.switch_latency_ps = machine.switch_latency_ps;
  fabric.payload_bytes = machine.payload_bytes;
  fabric.header_bytes = machine.header_bytes;
  fabric.ack_bytes = machine.ack_bytes;
  fabric.window_packets = machine.window_packets;
  return fabric;
}

// An unloaded network routes minimally: the hops tell which links these were.
oracle::Way way_of(const Rig& rig, const Transfer& transfer, std::uint32_t switch_hops) {
  const GroupId from = rig.dragonfly.group_of(rig.dragonfly.switch_of(transfer.source));
  const GroupId to = rig.dragonfly.group_of(rig.dragonfly.switch_of(transfer.target));
  if (from == to) return {switch_hops, 0};
  return {switch_hops - 1, 1};
}

struct Scene {
  const char* name;
  SampleMachine machine;
};

// Rates that divide nothing evenly, a window of 3 that closes on every long transfer, a packet of odd size, flights
// of zero, minimal routing.
std::vector<Scene> scenes() {
  std::vector<Scene> result{{"as assumed for Slingshot", {}}};
  Scene odd{"odd rate and sizes", {}};
  odd.machine.rate_bytes_per_s = 23'456'789'013;
  odd.machine.payload_bytes = 1'777;
  odd.machine.header_bytes = 61;
  odd.machine.ack_bytes = 27;
  odd.machine.routing = "minimal";
  result.push_back(odd);
  Scene narrow{"narrow window", {}};
  narrow.machine.window_packets = 3;
  narrow.machine.local_links = 2;
  result.push_back(narrow);
  Scene single{"window of one, hardly any flight", {}};
  single.machine.window_packets =
      1;  // nothing is in flight between packets: the flow may choose again, so one way only
  single.machine.global_links = 1;
  single.machine.edge_flight_ps = single.machine.local_flight_ps = single.machine.global_flight_ps = 1;
  result.push_back(single);
  Scene bulky{"acknowledgements larger than the last packet", {}};
  bulky.machine.ack_bytes = 500;
  result.push_back(bulky);
  return result;
}

TEST_CASE("one packet on one switch takes its serialisation, two flights and one switch") {
  // (8 + 64) B x 40 ps/B + 2 x 10 ns + 350 ns = 372,880 ps; home: + 32 B x 40 ps/B + 370 ns.
  Rig rig{SampleMachine{}};
  rig.submit_at(1'000, transfer_between(0, 1, 8));
  rig.engine.run(never);
  CHECK(rig.outcomes[0].delivered_ps == 1'000 + 372'880);
  CHECK(rig.outcomes[0].acknowledged_ps == 1'000 + 372'880 + 1'280 + 370'000);
  CHECK(rig.outcomes[0].switch_hops == 0);
  CHECK(rig.network.totals().piece_hops == 2);
}

TEST_CASE("a transfer alone in the fabric takes what the closed form says, to the picosecond") {
  for (const Scene& scene : scenes()) {
    const std::string name = scene.name;
    CAPTURE(name);
    const oracle::Fabric fabric = oracle_of(scene.machine);
    const std::uint64_t p = scene.machine.payload_bytes;
    std::uint32_t longest = 0;
    for (std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{8}, p - 1, p, p + 1, 2 * p, 3 * p + 7,
                                17 * p, 64 * p, 65 * p, 300 * p + 11}) {
      // 32 NICs, 8 to a group and 2 to a switch: on the switch, in the group, and all sorts beyond.
      for (std::uint32_t target : {1U, 2U, 5U, 7U, 8U, 11U, 14U, 16U, 19U, 23U, 24U, 28U, 31U}) {
        for (bool ordered : {false, true}) {
          Rig rig{scene.machine};
          const Transfer transfer = transfer_between(0, target, bytes, ordered);
          rig.submit_at(12'345, transfer);
          rig.engine.run(never);
          const Rig::Outcome& outcome = rig.outcomes[0];
          // Packets of an unordered transfer may take ways of different length; the closed form is for one way.
          if (!ordered && bytes > p && target >= 8) continue;
          const oracle::Way way = way_of(rig, transfer, outcome.switch_hops);
          const oracle::Times expected = oracle::unloaded(fabric, way, bytes);
          CAPTURE(bytes);
          CAPTURE(target);
          CAPTURE(ordered);
          REQUIRE(outcome.delivered_ps == 12'345 + expected.delivered_ps);
          REQUIRE(outcome.acknowledged_ps == 12'345 + expected.acknowledged_ps);
          REQUIRE(rig.network.at_rest());
          REQUIRE(rig.network.credit_bytes_outstanding() == 0);
          longest = std::max(longest, outcome.switch_hops);
        }
      }
    }
    CHECK(longest == 3);
  }
}

TEST_CASE("while the window stays open the closed form is one line, and the fabric equals that too") {
  SampleMachine machine;
  machine.window_packets = 1'000;
  for (std::uint64_t bytes : {0ULL, 100ULL, 2'048ULL, 100'000ULL, 2'000'000ULL}) {
    Rig rig{machine};
    const Transfer transfer = transfer_between(3, 29, bytes);
    rig.submit_at(0, transfer);
    rig.engine.run(never);
    const oracle::Way way = way_of(rig, transfer, rig.outcomes[0].switch_hops);
    const oracle::Times expected = oracle::unloaded_open_window(oracle_of(machine), way, bytes);
    CHECK(rig.outcomes[0].delivered_ps == expected.delivered_ps);
    CHECK(rig.outcomes[0].acknowledged_ps == expected.acknowledged_ps);
  }
}

// With room for one packet, each waits for the credit of the one before: 84,480 ps on the link, 10 ns of flight,
// 350 ns in the switch, and 10 ns for the credit to fly back, 454,480 ps a packet. The last then takes its own time.
TEST_CASE("a buffer of one packet makes each packet wait until the credit has flown back") {
  SampleMachine machine;
  machine.input_buffer_bytes = 2'112;
  Rig rig{machine};
  rig.submit_at(0, transfer_between(0, 1, 20 * 2'048));
  rig.engine.run(never);
  CHECK(rig.outcomes[0].delivered_ps == 19 * 454'480 + 84'480 + 370'000);
}

TEST_CASE("two flows into one NIC share its link half and half") {
  // 1 MiB from two sources on the same switch: the link to the target carries 2 x 512 packets of 2,112 B without a
  // gap, 2 x 512 x 84,480 ps, after the way of 10 + 350 + 10 ns. The turns end the two within two packets.
  Rig rig{[] {
    SampleMachine machine;
    machine.nodes = 16;
    machine.window_packets = 1'000;
    machine.input_buffer_bytes = 1 << 22;
    return machine;
  }()};
  rig.submit_at(0, transfer_between(0, 3, 1 << 20));
  rig.submit_at(0, transfer_between(1, 3, 1 << 20));
  rig.engine.run(never);
  const std::uint64_t last = std::max(rig.outcomes[0].delivered_ps, rig.outcomes[1].delivered_ps);
  const std::uint64_t first = std::min(rig.outcomes[0].delivered_ps, rig.outcomes[1].delivered_ps);
  CHECK(last == 370'000 + 2 * 512 * 84'480ULL);
  CHECK(last - first <= 2 * 84'480);
}

// The way of 8 bytes on one switch is 372,880 ps at 350 ns, see above.
TEST_CASE("a switch takes 300 to 400 ns, 350 on average, drawn anew for each packet and by the seed") {
  SampleMachine machine;
  machine.latency_spread_ps = 50'000;
  const auto run = [&](std::uint64_t seed) {
    machine.seed = seed;
    Rig rig{machine};
    for (std::uint64_t i = 0; i < 4'000; ++i) rig.submit_at(i * 2'000'000, transfer_between(0, 1, 8));
    rig.engine.run(never);
    std::vector<std::uint64_t> latencies_ps;
    for (std::uint64_t i = 0; i < 4'000; ++i) {
      latencies_ps.push_back(rig.outcomes[i].delivered_ps - i * 2'000'000 - 22'880);
    }
    return latencies_ps;
  };
  std::vector<std::uint64_t> one = run(1);
  CHECK(one == run(1));
  CHECK(one != run(2));
  std::uint64_t sum_ps = 0;
  for (const std::uint64_t latency_ps : one) sum_ps += latency_ps;
  // The mean of 4,000 has a standard deviation of 100 ns / sqrt(12) / sqrt(4,000) = 0.46 ns.
  CHECK(sum_ps / one.size() > 348'000);
  CHECK(sum_ps / one.size() < 352'000);
  std::sort(one.begin(), one.end());
  CHECK(one.front() >= 300'000);
  CHECK(one.front() < 301'000);
  CHECK(one.back() <= 400'000);
  CHECK(one.back() > 399'000);
}

TEST_CASE("a picosecond more on a link that is used is a picosecond more for whom it carries") {
  const auto run = [](const std::string& more) {
    SampleMachine machine;
    machine.more = more;
    Rig rig{machine};
    rig.submit_at(0, transfer_between(0, 2, 5'000));
    rig.submit_at(0, transfer_between(8, 10, 5'000));
    rig.engine.run(never);
    return std::pair{rig.outcomes[0].delivered_ps, rig.outcomes[1].delivered_ps};
  };
  const auto plain = run("fabric.extra_flight.count 0\n");
  // NIC 0 hangs on switch 0, NIC 2 on switch 1; the way there is n0 - s0 - s1 - n2.
  for (const auto& [from, to] : {std::pair{"n0", "s0"}, {"s0", "s1"}, {"s1", "n2"}}) {
    const auto extra = run(std::string("fabric.extra_flight.count 1\nfabric.extra_flight.0.from ") + from +
                           "\nfabric.extra_flight.0.to " + to + "\nfabric.extra_flight.0.ps 1\n");
    CHECK(extra.first == plain.first + 1);
    CHECK(extra.second == plain.second);
  }
  const std::string unused =
      "fabric.extra_flight.count 1\nfabric.extra_flight.0.from s2\n"
      "fabric.extra_flight.0.to s3\nfabric.extra_flight.0.ps 1000\n";
  CHECK(run(unused) == plain);
  CHECK_THROWS_WITH_AS(run("fabric.extra_flight.count 1\nfabric.extra_flight.0.from n0\n"
                           "fabric.extra_flight.0.to s1\nfabric.extra_flight.0.ps 1\n"),
                       "fabric.extra_flight.0.to = `s1`: no link leads there from n0", SpecError);
  CHECK_THROWS_AS(run("fabric.extra_flight.count 1\nfabric.extra_flight.0.from x0\n"
                      "fabric.extra_flight.0.to s1\nfabric.extra_flight.0.ps 1\n"),
                  SpecError);
}

}  // namespace
}  // namespace dryfly::fabric
