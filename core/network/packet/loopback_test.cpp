// What a NIC sends to itself (docs/model/on-node.md#through-the-nic).
#include <doctest/doctest.h>

#include <algorithm>

#include "testing/rig.hpp"

namespace dryfly::fabric {
namespace {

constexpr std::uint64_t frame_ps = 84'480;  // 2,112 B at 25 GB/s

SampleMachine machine_with_loopback(std::uint64_t bytes_per_s) {
  SampleMachine machine;
  machine.more += "fabric.nic.loopback_rate_bytes_per_s " + std::to_string(bytes_per_s) + "\n";
  return machine;
}

double bytes_per_s(std::uint64_t bytes, std::uint64_t ps) {
  return static_cast<double>(bytes) / static_cast<double>(ps) * 1e12;
}

TEST_CASE("a packet to its own NIC takes its serialisation, and the answer that of an acknowledgement") {
  Rig rig{machine_with_loopback(20'000'000'000)};
  rig.submit_at(1'000, transfer_between(0, 0, 8));
  rig.engine.run(never);
  CHECK(rig.outcomes[0].delivered_ps == 1'000 + 72 * 40);
  CHECK(rig.outcomes[0].acknowledged_ps == 1'000 + 72 * 40 + 32 * 40);
  CHECK(rig.network.totals().piece_hops == 0);
  CHECK(rig.network.at_rest());
}

TEST_CASE("a long transfer to its own NIC has the rate of the loopback, in payload; without one that of the link") {
  constexpr std::uint64_t bytes = 8 << 20;
  Rig slower{machine_with_loopback(20'000'000'000)};
  Rig as_link{SampleMachine{}};
  for (Rig* rig : {&slower, &as_link}) {
    rig->submit_at(0, transfer_between(0, 0, bytes));
    rig->engine.run(never);
  }
  CHECK(bytes_per_s(bytes, slower.outcomes[0].delivered_ps) == doctest::Approx(20e9).epsilon(0.001));
  CHECK(bytes_per_s(bytes, as_link.outcomes[0].delivered_ps) == doctest::Approx(25e9 * 2048 / 2112).epsilon(0.001));
}

// NIC 1 is on the same switch.
TEST_CASE("what loops and what comes share the way into the NIC, what loops and what goes the way out of it") {
  constexpr std::uint64_t bytes = 1 << 20;
  for (const bool comes : {true, false}) {
    SampleMachine machine;
    machine.nodes = 16;
    machine.window_packets = 1'000;
    machine.input_buffer_bytes = 1 << 22;
    Rig rig{machine};
    rig.submit_at(0, transfer_between(0, 0, bytes));
    rig.submit_at(0, comes ? transfer_between(1, 0, bytes) : transfer_between(0, 1, bytes));
    rig.engine.run(never);
    const std::uint64_t last = std::max(rig.outcomes[0].delivered_ps, rig.outcomes[1].delivered_ps);
    const std::uint64_t first = std::min(rig.outcomes[0].delivered_ps, rig.outcomes[1].delivered_ps);
    CHECK(last >= 2 * 512 * frame_ps);
    CHECK(last <= 2 * 512 * frame_ps + 20 * frame_ps);
    CHECK(last - first <= 20 * frame_ps);
  }
}

TEST_CASE("what loops takes no room in the switch") {
  Rig rig{SampleMachine{}};
  rig.submit_at(0, transfer_between(0, 0, 4 << 20));
  rig.engine.run(Instant{100'000'000});
  CHECK(!rig.network.at_rest());
  CHECK(rig.network.credit_bytes_outstanding() == 0);
}

TEST_CASE("a class's ceiling holds for what loops as well") {
  SampleMachine machine;
  Rig rig{machine};
  Transfer transfer = transfer_between(0, 0, 1 << 20);
  transfer.traffic_class = TrafficClass::low_latency;  // ceiling 5 %
  rig.submit_at(0, transfer);
  rig.engine.run(never);
  CHECK(bytes_per_s(1 << 20, rig.outcomes[0].delivered_ps) < 25e9 * 0.055);
}

}  // namespace
}  // namespace dryfly::fabric
