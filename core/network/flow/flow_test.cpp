// The flow model as a whole: exact where nothing is shared, fair where something is, and nothing made or lost.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "core/network/flow/flow_network.hpp"
#include "core/network/flow/traffic.hpp"
#include "oracle/unloaded.hpp"
#include "testing/rig.hpp"

namespace dryfly::flow {
namespace {

using fabric::SampleMachine;
using fabric::transfer_between;
using Rig = fabric::RigOf<FlowNetwork>;

constexpr std::uint64_t MiB = 1 << 20;
constexpr std::uint64_t frame_ps = 84'480;  // 2,112 B at 25 GB/s
constexpr std::uint64_t us = 1'000'000;

// 32 NICs: groups of four switches with two each.
SampleMachine machine(std::uint64_t nodes = 8) {
  SampleMachine machine;
  machine.nodes = nodes;
  return machine;
}

double bytes_per_s(std::uint64_t bytes, std::uint64_t ps) {
  return static_cast<double>(bytes) / static_cast<double>(ps) * 1e12;
}

std::uint64_t took_ps(const Rig& rig, std::size_t transfer) {
  return rig.outcomes[transfer].delivered_ps - rig.submitted_ps[transfer];
}

TEST_CASE("a transfer that is alone takes what the closed form says, to the picosecond") {
  const oracle::Fabric fabric{25'000'000'000, 10'000, 10'000, 100'000, 350'000, 2'048, 64, 32, 64};
  for (const std::uint64_t bytes :
       {0ULL, 1ULL, 8ULL, 2'048ULL, 2'049ULL, 8'192ULL, 20'000ULL, 100'000ULL, 5'000'000ULL}) {
    for (const bool ordered : {true, false}) {
      for (const std::uint32_t target : {1U, 2U, 9U, 31U}) {
        Rig rig{machine()};
        rig.submit_at(1'000, transfer_between(0, target, bytes, ordered));
        rig.engine.run(never);
        const std::uint64_t hops = rig.outcomes[0].switch_hops;
        const std::uint64_t global = target < 8 ? 0 : 1;
        const oracle::Times times = oracle::unloaded_open_window(fabric, {hops - global, global}, bytes);
        CAPTURE(bytes);
        CAPTURE(target);
        CHECK(rig.outcomes[0].delivered_ps == 1'000 + times.delivered_ps);
        CHECK(rig.outcomes[0].acknowledged_ps == 1'000 + times.acknowledged_ps);
      }
    }
  }
}

TEST_CASE("a transfer that is alone is alone on every detour it is spread over") {
  const oracle::Fabric fabric{25'000'000'000, 10'000, 10'000, 100'000, 350'000, 2'048, 64, 32, 64};
  SampleMachine detours = machine(32);
  detours.groups = 1;
  detours.routing = "valiant";
  Rig rig{detours};
  rig.submit_at(0, transfer_between(0, 9, 5'000'000, false));
  rig.engine.run(never);
  CHECK(rig.outcomes[0].switch_hops == 2);
  CHECK(rig.outcomes[0].delivered_ps == oracle::unloaded_open_window(fabric, {2, 0}, 5'000'000).delivered_ps);
}

TEST_CASE("of a crowd everything arrives once, no link ever has more than it can carry, and each run is the same") {
  std::vector<std::uint64_t> fingerprints;
  for (int run = 0; run < 2; ++run) {
    Rig rig{machine()};
    const RandomStream random{3, 0, Purpose::test};
    std::uint64_t draws = 0;
    constexpr std::uint64_t sizes[] = {8, 4'000, 30'000, 200'000, MiB};
    for (int n = 0; n < 2'000; ++n) {
      const std::uint32_t source = random.below(draws++, 32);
      Transfer transfer = transfer_between(source, random.below(draws++, 32), sizes[n % 5], n % 3 == 0);
      if (n % 4 == 0) transfer.traffic_class = TrafficClass::bulk_data;
      if (n % 9 == 0) transfer.traffic_class = TrafficClass::low_latency;
      rig.submit_at(random.below(draws++, 400 * us), transfer);
    }
    std::uint32_t busy = 0;
    for (std::uint64_t at_ps = us; at_ps < 400 * us; at_ps += us) {
      rig.engine.run(Instant{at_ps});
      const Pipes& pipes = rig.network.traffic().pipes();
      for (std::uint32_t pipe = 0; pipe < pipes.count(); ++pipe) {
        CHECK(pipes[pipe].share <= pipes[pipe].capacity * 1.001);
        if (pipes[pipe].share > 0.9 * pipes[pipe].capacity) ++busy;
      }
    }
    CHECK(busy > 1'000);
    rig.engine.run(never);
    CHECK(rig.network.at_rest());
    CHECK(rig.delivery_order.size() == rig.transfers.size());
    CHECK(rig.acknowledged_count == rig.transfers.size());
    CHECK(rig.network.totals().payload_bytes == rig.submitted_bytes);
    for (const Pipe& pipe : {rig.network.traffic().pipes()[0], rig.network.traffic().pipes()[40]})
      CHECK(pipe.share == 0);
    fingerprints.push_back(rig.fingerprint);
  }
  CHECK(fingerprints[0] == fingerprints[1]);
}

TEST_CASE("sources of one NIC have equal shares of it, and a victim beside it has all it had before") {
  Rig rig{machine()};
  for (std::uint32_t source = 8; source < 24; ++source) rig.submit_at(0, transfer_between(source, 0, MiB, false));
  rig.submit_at(0, transfer_between(31, 1, MiB, false));
  rig.engine.run(never);
  for (std::size_t n = 0; n < 16; ++n) {
    // 16 times 512 frames.
    CHECK(static_cast<double>(took_ps(rig, n)) == doctest::Approx(16.0 * 512 * frame_ps).epsilon(0.01));
  }
  CHECK(static_cast<double>(took_ps(rig, 16)) == doctest::Approx(512.0 * frame_ps).epsilon(0.05));
}

TEST_CASE("nobody starves: one that comes late among many has its share at once") {
  Rig rig{machine()};
  for (std::uint32_t source = 8; source < 15; ++source) rig.submit_at(0, transfer_between(source, 0, 16 * MiB, false));
  rig.submit_at(100 * us, transfer_between(30, 0, MiB, false));
  rig.engine.run(never);
  // An eighth of the NIC.
  CHECK(static_cast<double>(took_ps(rig, 7)) == doctest::Approx(8.0 * 512 * frame_ps).epsilon(0.03));
}

TEST_CASE("what a NIC sends and what it answers share its link") {
  Rig rig{machine()};
  rig.submit_at(0, transfer_between(0, 8, 8 * MiB, false));
  rig.submit_at(0, transfer_between(8, 0, 8 * MiB, false));
  rig.engine.run(never);
  // Each frame of 2,112 B meets an answer of 32 B.
  CHECK(static_cast<double>(took_ps(rig, 0)) == doctest::Approx(4096.0 * frame_ps * (1 + 32.0 / 2112)).epsilon(0.005));
}

TEST_CASE("traffic for one switch takes detours when its link is full; by minimal routing it cannot") {
  // Eight NICs of switch 0 to those of switch 1 in a group of four: 1 of the direct link, 2 by the other two.
  for (const bool adaptive : {true, false}) {
    SampleMachine busy = machine(32);
    busy.groups = 1;
    busy.routing = adaptive ? "adaptive" : "minimal";
    Rig rig{busy};
    for (std::uint32_t source = 0; source < 8; ++source) {
      rig.submit_at(0, transfer_between(source, 8 + source, 4 * MiB, false));
    }
    rig.engine.run(never);
    std::uint64_t last = 0;
    for (const auto& outcome : rig.outcomes) last = std::max(last, outcome.delivered_ps);
    const double links = 8.0 * 2048 * frame_ps / static_cast<double>(last);
    CHECK(links == doctest::Approx(adaptive ? 3 : 1).epsilon(0.1));
  }
}

TEST_CASE("a loaded link of a large group is gone around by all switches that lie idle") {
  // 16 NICs of switch 0 to those of switch 1, of 32; what comes between gives all their streams the same first detour.
  SampleMachine large = machine(512);
  large.groups = 1;
  large.switches = 32;
  Rig rig{large};
  for (std::uint32_t source = 0; source < 16; ++source) {
    rig.submit_at(0, transfer_between(source, 16 + source, 4 * MiB, false));
    for (std::uint32_t other = 0; other < 31; ++other) {
      rig.submit_at(0, transfer_between(32 + 2 * other, 33 + 2 * other, 65'536, false));
    }
  }
  rig.engine.run(never);
  std::uint64_t last = 0;
  for (std::size_t n = 0; n < rig.outcomes.size(); n += 32) last = std::max(last, rig.outcomes[n].delivered_ps);
  CHECK(16.0 * 2048 * frame_ps / static_cast<double>(last) == doctest::Approx(16).epsilon(0.1));
}

TEST_CASE("of two groups there is no third, but within each a loaded link is gone around all the same") {
  SampleMachine two = machine(32);
  two.groups = 2;
  Rig rig{two};
  for (std::uint32_t source = 0; source < 8; ++source) {
    rig.submit_at(0, transfer_between(source, 8 + source, 4 * MiB, false));
  }
  rig.engine.run(never);
  std::uint64_t last = 0;
  for (const auto& outcome : rig.outcomes) last = std::max(last, outcome.delivered_ps);
  CHECK(8.0 * 2048 * frame_ps / static_cast<double>(last) == doctest::Approx(3).epsilon(0.1));
}

// It lets a NIC choose a piece each microsecond, less than the link carries of pieces of 16 KiB.
struct SlowBus final : HostBus {
  void took(NicId, std::uint8_t, Bytes, Instant) override {}
  void sends(NicId, std::uint8_t, Bytes, Instant now) override { next = now + Duration{1'000'000}; }
  Instant may_send(NicId) const override { return next; }
  Instant next;
};

TEST_CASE("streams of a NIC whose bus is slow take turns at it, whichever came first") {
  SlowBus bus;
  Rig rig{machine()};
  rig.network.attach(bus);
  for (std::uint32_t target = 8; target < 16; ++target) rig.submit_at(0, transfer_between(0, target, MiB, false));
  rig.engine.run(never);
  // 8 x 64 pieces: the first stream has its last one in the turn in which the last stream has, one before two of each.
  for (const auto& outcome : rig.outcomes) {
    CHECK(static_cast<double>(outcome.delivered_ps) == doctest::Approx(512e6).epsilon(0.05));
  }
}

TEST_CASE("what a NIC sends to itself has equal shares at any instant, whoever else sends elsewhere") {
  const auto times = [](bool crowd) {
    Rig rig{machine()};
    for (const std::uint64_t size : {1, 2, 4}) rig.submit_at(0, transfer_between(0, 0, size * MiB, false));
    for (std::uint32_t n = 0; crowd && n < 200; ++n) {
      rig.submit_at(n * us / 10, transfer_between(2 + n % 14, 16 + n % 13, MiB / 2, false));
    }
    rig.engine.run(never);
    return std::vector<std::uint64_t>{took_ps(rig, 0), took_ps(rig, 1), took_ps(rig, 2)};
  };
  const std::vector<std::uint64_t> alone = times(false);
  CHECK(times(true) == alone);
  // 3 x 1, then 2 x 1, then 2 MiB.
  const double MiB_ps = MiB / 2048 * static_cast<double>(frame_ps);
  CHECK(static_cast<double>(alone[0]) == doctest::Approx(3 * MiB_ps).epsilon(0.04));
  CHECK(static_cast<double>(alone[1] - alone[0]) == doctest::Approx(2 * MiB_ps).epsilon(0.001));
  CHECK(static_cast<double>(alone[2] - alone[1]) == doctest::Approx(2 * MiB_ps).epsilon(0.001));
}

TEST_CASE("many loops of a NIC divide its link as well, and so do those that are left of them") {
  Rig rig{machine()};
  for (int n = 0; n < 40; ++n) rig.submit_at(0, transfer_between(0, 0, n < 30 ? MiB : 2 * MiB, false));
  rig.engine.run(never);
  const double MiB_ps = MiB / 2048 * static_cast<double>(frame_ps);
  CHECK(static_cast<double>(took_ps(rig, 0)) == doctest::Approx(40 * MiB_ps).epsilon(0.03));
  CHECK(static_cast<double>(took_ps(rig, 39)) == doctest::Approx(50 * MiB_ps).epsilon(0.03));
}

TEST_CASE("a class has its ceiling, and classes share a NIC by what is assured to them") {
  Rig rig{machine()};
  Transfer capped = transfer_between(0, 8, MiB, false);
  capped.traffic_class = TrafficClass::low_latency;
  rig.submit_at(0, capped);
  // Of four streams of one NIC three are bulk data: each class has half.
  for (int n = 0; n < 4; ++n) {
    Transfer transfer = transfer_between(16, 24 + static_cast<std::uint32_t>(n), n == 0 ? 4 * MiB : 8 * MiB, false);
    if (n > 0) transfer.traffic_class = TrafficClass::bulk_data;
    rig.submit_at(0, transfer);
  }
  rig.engine.run(never);
  CHECK(bytes_per_s(MiB, took_ps(rig, 0)) == doctest::Approx(0.05 * 25e9 * 2048 / 2112).epsilon(0.01));
  CHECK(bytes_per_s(4 * MiB, took_ps(rig, 1)) == doctest::Approx(12.5e9 * 2048 / 2112).epsilon(0.02));
}

// Many short transfers at once from each of the sources; what each class has had by the time at which the first of them
// is through, by the assumption that it had it evenly: bytes/s.
struct OfClass {
  TrafficClass traffic_class;
  std::uint32_t first_source;
  std::uint32_t sources;
};
std::vector<double> rates(const SampleMachine& sample, const std::vector<OfClass>& classes, std::uint32_t target) {
  constexpr std::uint64_t bytes = 8 * 1024;
  constexpr std::uint64_t each = 1'000;
  Rig rig{sample};
  for (const OfClass& own : classes) {
    for (std::uint64_t n = 0; n < each * own.sources; ++n) {
      const std::uint32_t source = own.first_source + static_cast<std::uint32_t>(n % own.sources);
      Transfer transfer = transfer_between(source, target, bytes, false);
      transfer.traffic_class = own.traffic_class;
      rig.submit_at(n * 10'000, transfer);
    }
  }
  rig.engine.run(never);
  std::vector<std::uint64_t> last_ps(classes.size());
  std::size_t begin = 0;
  std::vector<std::size_t> begins;
  for (std::size_t index = 0; index < classes.size(); ++index) {
    begins.push_back(begin);
    begin += each * classes[index].sources;
    for (std::size_t n = begins[index]; n < begin; ++n) {
      last_ps[index] = std::max(last_ps[index], rig.outcomes[n].delivered_ps);
    }
  }
  begins.push_back(begin);
  const std::uint64_t end_ps = *std::min_element(last_ps.begin(), last_ps.end());
  std::vector<double> found;
  for (std::size_t index = 0; index < classes.size(); ++index) {
    std::uint64_t delivered = 0;
    for (std::size_t n = begins[index]; n < begins[index + 1]; ++n) {
      if (rig.outcomes[n].delivered_ps <= end_ps) delivered += bytes;
    }
    found.push_back(bytes_per_s(delivered, end_ps));
  }
  return found;
}

TEST_CASE("classes of short transfers share a hot NIC by their shares, with and without congestion management") {
  for (const char* management : {"on", "off"}) {
    SampleMachine sample = machine();
    sample.management = management;
    const double whole = 25e9 * 2048 / 2112;
    CAPTURE(management);
    // 20 and 50 of 70, however many sources a class has.
    const std::vector<double> two =
        rates(sample, {{TrafficClass::bulk_data, 8, 6}, {TrafficClass::best_effort, 16, 2}}, 0);
    CHECK(two[0] == doctest::Approx(whole * 20 / 70).epsilon(0.05));
    CHECK(two[1] == doctest::Approx(whole * 50 / 70).epsilon(0.05));
    // Low latency goes first and has 5 %; what is left goes by 20 and 50 of 70.
    const std::vector<double> three = rates(
        sample,
        {{TrafficClass::low_latency, 8, 3}, {TrafficClass::bulk_data, 16, 6}, {TrafficClass::best_effort, 24, 2}}, 0);
    CHECK(three[0] == doctest::Approx(whole * 0.05).epsilon(0.05));
    CHECK(three[1] == doctest::Approx(whole * 0.95 * 20 / 70).epsilon(0.05));
    CHECK(three[2] == doctest::Approx(whole * 0.95 * 50 / 70).epsilon(0.05));
  }
}

TEST_CASE("a class that has less than its share of a hot NIC waits for no other") {
  // 600 times 8 KiB, one each 2 us, are 4 of the 6.9 GB/s that bulk data is due; the other class fills the link.
  Rig rig{machine()};
  constexpr std::uint64_t bytes = 8 * 1024;
  for (std::uint64_t n = 0; n < 600; ++n) {
    Transfer transfer = transfer_between(8, 0, bytes, false);
    transfer.traffic_class = TrafficClass::bulk_data;
    rig.submit_at(n * 2 * us, transfer);
  }
  for (std::uint32_t source = 16; source < 24; ++source) {
    for (int n = 0; n < 600; ++n) rig.submit_at(0, transfer_between(source, 0, bytes, false));
  }
  rig.engine.run(never);
  // Behind the first, which come before anything of the other class is held back.
  std::uint64_t longest_ps = 0;
  for (std::size_t n = 10; n < 600; ++n) longest_ps = std::max(longest_ps, took_ps(rig, n));
  const std::uint64_t alone_ps = 2 * 350'000 + 120'000 + 4 * frame_ps;
  CHECK(longest_ps < alone_ps + 10 * frame_ps);
}

TEST_CASE("short transfers leave a NIC one behind the other, and no more than its window is under way") {
  SampleMachine small = machine();
  small.window_packets = 4;
  Rig rig{small};
  for (int n = 0; n < 100; ++n) rig.submit_at(0, transfer_between(0, 1, 8, false));
  rig.engine.run(never);
  // Out and home take 2 x 350 ns and 4 x 10 ns of flight, 72 B and 32 B on the link; four at a time.
  const double round_ps = 740'000 + 72 * 40 + 32 * 40;
  CHECK(static_cast<double>(rig.outcomes[99].acknowledged_ps) == doctest::Approx(25 * round_ps).epsilon(0.02));
}

TEST_CASE("what short transfers took of a link a stream has again when they are over") {
  Rig rig{machine()};
  for (int n = 0; n < 100; ++n) rig.submit_at(0, transfer_between(0, 9, 32 * 1024, false));
  // They are through after 135 us.
  rig.submit_at(140 * us, transfer_between(0, 9, 32 * MiB, false));
  rig.engine.run(never);
  const double alone_ps = 32.0 * MiB / 2048 * static_cast<double>(frame_ps);
  CHECK(static_cast<double>(took_ps(rig, 100)) < 1.03 * alone_ps);
}

// --- faults -------------------------------------------------------------------------------------------------------

SampleMachine with(const std::string& faults, int count, const std::string& routing = "adaptive") {
  SampleMachine faulty = machine();
  faulty.routing = routing;
  faulty.more += fabric::fault_times(2) + "faults.seed 1\nfaults.count " + std::to_string(count) + "\n" + faults;
  return faulty;
}

struct FaultRig : Rig {
  explicit FaultRig(const SampleMachine& faulty) : Rig(faulty) { network.restart(Instant{0}); }
  void failed(std::uint32_t handle, bool delivered) override { failures.push_back({handle, delivered}); }
  std::vector<std::pair<std::uint32_t, bool>> failures;
};

constexpr std::uint64_t s = 1'000'000'000'000;

TEST_CASE("a NIC with half of its lanes has half of its rate") {
  FaultRig rig{with("faults.0.kind lanes\nfaults.0.where n5\nfaults.0.from_ps 0\nfaults.0.lanes 2\n", 1)};
  rig.submit_at(0, transfer_between(5, 20, MiB, false));
  rig.submit_at(0, transfer_between(6, 21, MiB, false));
  rig.engine.run(never);
  CHECK(static_cast<double>(took_ps(rig, 0)) == doctest::Approx(2.0 * 512 * frame_ps).epsilon(0.05));
  CHECK(static_cast<double>(took_ps(rig, 1)) == doctest::Approx(512.0 * frame_ps).epsilon(0.05));
}

TEST_CASE("a link that traffic of others has three tenths of carries the rest") {
  FaultRig rig{with("faults.0.kind load\nfaults.0.where s0>s1\nfaults.0.from_ps 0\nfaults.0.rate_ppb 300000000\n", 1,
                    "minimal")};
  rig.submit_at(0, transfer_between(0, 2, 8 * MiB, false));
  rig.engine.run(never);
  CHECK(static_cast<double>(took_ps(rig, 0)) == doctest::Approx(4096.0 * frame_ps / 0.7).epsilon(0.005));
}

TEST_CASE("however many streams come and go, one event at most waits for the next change of a link") {
  FaultRig rig{with("faults.0.kind lanes\nfaults.0.where n5\nfaults.0.from_ps 1000000000000\nfaults.0.lanes 2\n", 1)};
  // A stream of 1 MiB takes less than 50 us, so each has ended before the next begins.
  for (std::uint64_t n = 0; n < 20; ++n) rig.submit_at(n * 100 * us, transfer_between(5, 20, MiB, false));
  rig.engine.run(Instant{2'000 * us});
  CHECK(rig.acknowledged_count == 20);
  CHECK(rig.engine.events_pending() == 1);
}

TEST_CASE("what meets a link that is down is sent again after its time-out, in order, and arrives") {
  // Down from 1 s on for 10 us; a long transfer is under way, short ones follow it.
  FaultRig rig{
      with("faults.0.kind down\nfaults.0.where n5\nfaults.0.from_ps 1000000000000\n"
           "faults.0.until_ps 1000010000000\n",
           1)};
  for (const bool ordered : {true, false}) rig.submit_at(s - 20 * us, transfer_between(5, 20, MiB, ordered));
  for (int n = 0; n < 20; ++n) rig.submit_at(s + static_cast<std::uint64_t>(n) * us, transfer_between(5, 20, 100));
  rig.submit_at(2 * s, transfer_between(5, 20, MiB));
  rig.engine.run(never);
  CHECK(rig.failures.empty());
  CHECK(rig.network.at_rest());
  CHECK(rig.acknowledged_count == rig.transfers.size());
  CHECK(rig.network.totals().payload_bytes == rig.submitted_bytes);
  CHECK(rig.network.totals().faults.network_timeouts > 0);
  CHECK(rig.network.totals().faults.pieces_lost > 0);
  CHECK(rig.outcomes[0].delivered_ps > s + 1'073'000'000'000);
  std::uint64_t last = 0;
  for (const std::uint32_t handle : rig.delivery_order) {
    if (!rig.transfers[handle].ordered) continue;
    CHECK(rig.submitted_ps[handle] >= last);
    last = rig.submitted_ps[handle];
  }
}

// Of 16 packets each: two are lost, two come behind them and are refused, and one is on its way when the first has
// timed out, so that it is refused while the others are being sent again.
TEST_CASE("what is refused while its line is sent again goes behind what came before it, and once") {
  FaultRig rig{
      with("faults.0.kind down\nfaults.0.where n5\nfaults.0.from_ps 1000000000000\n"
           "faults.0.until_ps 1000010000000\n",
           1)};
  const std::uint64_t due_ps = s + us + 1'073'741'824'000;
  for (const std::uint64_t at_ps : {s + us, s + 5 * us, s + 20 * us, s + 25 * us, due_ps - us / 5})
    rig.submit_at(at_ps, transfer_between(5, 20, std::uint64_t{16} * 2'048));
  rig.engine.run(never);
  CHECK(rig.delivery_order == std::vector<std::uint32_t>{0, 1, 2, 3, 4});
  const FaultTotals faults = rig.network.totals().faults;
  CHECK(faults.network_timeouts == 1);
  CHECK(faults.pieces_lost == 2 * 16);
  CHECK(faults.pieces_refused == 3 * 16);
  CHECK(faults.pieces_sent_again == 5 * 16);
  const NicAccount account = rig.network.nic_accounts(rig.engine.now()).at({5});
  CHECK(account.refusals == 3 * 16);
  CHECK(account.sent_again == 5 * 16);
}

TEST_CASE("what is never reached fails after all retries, and the health of links tells why") {
  FaultRig rig{with("faults.0.kind down\nfaults.0.where n5\nfaults.0.from_ps 0\n", 1)};
  rig.submit_at(us, transfer_between(5, 20, MiB, false));
  rig.submit_at(us, transfer_between(20, 5, 8));
  rig.engine.run(never);
  CHECK(rig.failures.size() == 2);
  // Three time-outs, and 4 s before the last retry.
  CHECK(rig.engine.now().ps > 7 * s);
  CHECK(rig.network.totals().faults.transfers_failed == 2);
  const auto health = rig.network.link_health(rig.engine.now());
  CHECK(health.size() == 2);
  CHECK(health[0].pieces_lost > 0);
}

TEST_CASE("flows take no link that is absent, and those that remain carry what they can") {
  // One of the two links between groups 0 and 1: by minimal routing four NICs share the other.
  const Dragonfly dragonfly(machine().spec());
  const GlobalEnd& gone = dragonfly.global_ends({0}, {1})[0];
  FaultRig rig{with("faults.0.kind absent\nfaults.0.where s" + std::to_string(gone.near.value) + "-s" +
                        std::to_string(gone.far.value) + "\nfaults.0.from_ps 0\n",
                    1, "minimal")};
  for (std::uint32_t source = 0; source < 4; ++source) {
    rig.submit_at(0, transfer_between(source, 8 + source, MiB, false));
  }
  rig.engine.run(never);
  std::uint64_t last = 0;
  for (const auto& outcome : rig.outcomes) last = std::max(last, outcome.delivered_ps);
  CHECK(static_cast<double>(last) == doctest::Approx(4.0 * 512 * frame_ps).epsilon(0.05));
  CHECK(rig.network.totals().faults.network_timeouts == 0);
}

}  // namespace
}  // namespace dryfly::flow
