// Scenarios of faults, each with a small table of what is expected. Numbers are those of sample_machine.hpp: 25 GB/s,
// 2,048 B of payload and 64 B of headers in a packet, so 84,480 ps of a full packet on a link.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/network/fabric/link_faults.hpp"
#include "testing/rig.hpp"

namespace dryfly::fabric {
namespace {

constexpr std::uint64_t s = 1'000'000'000'000;
constexpr std::uint64_t epoch = 1'073'741'824'000;  // 2^30 ns, the time-out of a packet

struct Line {
  std::string kind;
  std::string where;
  std::uint64_t from_ps = 0;
  std::uint64_t until_ps = 0;  // 0: for good
  std::string more;            // `lanes 2`, `rate_ppb 5`
};

// Four groups of four switches with two NICs each, NIC 2k and 2k+1 at switch k. Two links between two groups.
SampleMachine with(const std::vector<Line>& lines, const std::string& routing = "minimal") {
  SampleMachine machine;
  machine.routing = routing;
  machine.more += fault_times(4) + "faults.seed 1\nfaults.count " + std::to_string(lines.size()) + "\n";
  for (std::size_t n = 0; n < lines.size(); ++n) {
    const std::string name = "faults." + std::to_string(n) + ".";
    machine.more += name + "kind " + lines[n].kind + "\n" + name + "where " + lines[n].where + "\n" + name +
                    "from_ps " + std::to_string(lines[n].from_ps) + "\n";
    if (lines[n].until_ps != 0) machine.more += name + "until_ps " + std::to_string(lines[n].until_ps) + "\n";
    if (!lines[n].more.empty()) machine.more += name + lines[n].more + "\n";
  }
  return machine;
}

struct FaultRig : Rig {
  explicit FaultRig(const SampleMachine& machine) : Rig(machine) { network.restart(Instant{0}); }
  void failed(std::uint32_t handle, bool delivered) override {
    failures.push_back({handle, delivered, engine.now().ps});
  }
  FaultTotals faults() const { return network.totals().faults; }
  // Everything submitted has arrived once, and nothing is left anywhere.
  void check_nothing_lost() {
    engine.run(never);
    CHECK(network.at_rest());
    CHECK(network.credit_bytes_outstanding() == 0);
    CHECK(acknowledged_count == transfers.size());
    CHECK(delivery_order.size() == transfers.size());
    CHECK(network.totals().payload_bytes == submitted_bytes);
  }

  struct Failure {
    std::uint32_t handle = 0;
    bool delivered = false;
    std::uint64_t at_ps = 0;
  };
  std::vector<Failure> failures;
};

}  // namespace

TEST_CASE("a packet that meets a flap is sent again after the time-out epoch, and again 4 s after the second") {
  // NIC 0 to NIC 1, one switch. Unloaded: 84,480 ps + 2 flights of 10 ns + 350 ns = 454,480 ps.
  constexpr std::uint64_t unloaded = 454'480;
  struct Row {
    std::uint64_t flap_s;
    std::uint64_t timeouts;
    std::uint64_t delivered_ps;
  };
  // Sent at 1 s into a link that is down from 1 s on: lost; again at + 1.07 s, + 2.15 + 4 s, + 7.22 + 8 s.
  const Row rows[] = {{1, 1, 1 * s + epoch + unloaded},
                      {2, 2, 1 * s + 2 * epoch + 4 * s + unloaded},
                      {5, 2, 1 * s + 2 * epoch + 4 * s + unloaded},
                      {8, 3, 1 * s + 3 * epoch + 12 * s + unloaded},
                      {20, 4, 1 * s + 4 * epoch + 24 * s + unloaded}};
  for (const Row& row : rows) {
    for (const bool ordered : {true, false}) {
      CAPTURE(row.flap_s);
      CAPTURE(ordered);
      FaultRig rig(with({{"down", "n0", 1 * s, (1 + row.flap_s) * s, ""}}));
      rig.submit_at(1 * s, transfer_between(0, 1, 2048, ordered));
      rig.check_nothing_lost();
      CHECK(rig.outcomes[0].delivered_ps == row.delivered_ps);
      CHECK(rig.faults().network_timeouts == row.timeouts);
      CHECK(rig.faults().pieces_lost == row.timeouts);
    }
  }
}

TEST_CASE("the health of a link says how often and how long it was down, what it lost, and how it is") {
  FaultRig rig(with({{"down", "n0", 1 * s, 3 * s, ""},
                     {"down", "n0", 2 * s, 4 * s, ""},
                     {"down", "n0", 6 * s, 0, ""},
                     {"lanes", "n1", 5 * s, 7 * s, "lanes 2"},
                     {"absent", "n7", 0, 0, ""}}));
  rig.submit_at(2 * s, transfer_between(0, 2, 2048, false));
  rig.engine.run(Instant{10 * s});
  using State = LinkHealth::State;
  // Both directions of both cables; the one that is not there has no health.
  const std::vector<LinkHealth> at_5 = rig.network.link_health(Instant{5 * s});
  REQUIRE(at_5.size() == 4);
  std::uint64_t lost = 0;
  for (const LinkHealth& link : at_5) {
    lost += link.pieces_lost;
    if (link.state == State::fewer_lanes) {
      CHECK(link.fewer_lanes_ps == 0);
      continue;
    }
    CHECK(link.state == State::up);
    CHECK(link.times_down == 1);
    CHECK(link.down_ps == 3 * s);
    CHECK(link.signal_ps == 2 * s);
  }
  CHECK(lost == rig.faults().pieces_lost);
  CHECK(lost > 0);
  std::uint64_t down = 0;
  for (const LinkHealth& link : rig.network.link_health(Instant{10 * s})) {
    if (link.state != State::down) {
      CHECK(link.state == State::up);
      CHECK(link.fewer_lanes_ps == 2 * s);
      CHECK(link.signal_ps == 9 * s);  // half of the two seconds
      continue;
    }
    ++down;
    CHECK(link.times_down == 2);
    CHECK(link.down_ps == 7 * s);
  }
  CHECK(down == 2);
}

TEST_CASE("a link on three or two of its four lanes takes 4/3 or twice the time for each packet") {
  // NIC 0 to NIC 1. The edge link of the source is slow: n full packets follow each other at its pace.
  for (const std::uint64_t lanes : {4, 3, 2, 1}) {
    FaultRig rig(with({{"lanes", "n0>s0", 0, 0, "lanes " + std::to_string(lanes)}}));
    constexpr std::uint64_t packets = 50;
    rig.submit_at(1, transfer_between(0, 1, packets * 2048));
    rig.check_nothing_lost();
    const std::uint64_t packet_ps = (84'480 * 4 + lanes - 1) / lanes;
    // The last of them starts behind the others and takes the way once: 2 flights and the switch.
    CHECK(rig.outcomes[0].delivered_ps == 1 + packets * packet_ps + 370'000);
  }
}

TEST_CASE("a whole link carries 24.2 GB/s of payload, two lanes of it half of that") {
  struct Row {
    std::string lanes;
    double gigabytes_per_s;
  };
  for (const Row& row : {Row{"lanes 4", 25.0 * 2048 / 2112}, Row{"lanes 2", 12.5 * 2048 / 2112}}) {
    SampleMachine machine = with({{"lanes", "s0>n1", 0, 0, row.lanes}});
    machine.window_packets = 1024;
    FaultRig rig(machine);
    constexpr std::uint64_t bytes = 64 << 20;
    rig.submit_at(1, transfer_between(0, 1, bytes));
    rig.check_nothing_lost();
    const double rate = static_cast<double>(bytes) / static_cast<double>(rig.outcomes[0].delivered_ps) * 1000;
    CHECK(rate == doctest::Approx(row.gigabytes_per_s).epsilon(0.001));
  }
}

TEST_CASE("link-level replays delay packets and lose none") {
  FaultRig rig(with({{"replays", "s0>n1", 0, 0, "rate_ppb 100000000"}}));
  constexpr std::uint64_t packets = 2000;
  rig.submit_at(1, transfer_between(0, 1, packets * 2048));
  rig.check_nothing_lost();
  const std::uint64_t replays = rig.faults().link_replays;
  CHECK(replays > packets / 10 - 60);  // 200 expected, one standard deviation is 13
  CHECK(replays < packets / 10 + 60);
  CHECK(rig.faults().network_timeouts == 0);
  // Each costs the wire a round trip of 20 ns and the frame again; the link has nothing else to wait for.
  CHECK(rig.outcomes[0].delivered_ps == 1 + packets * 84'480 + 370'000 + replays * (20'000 + 84'480));
}

TEST_CASE("a flap in the middle of a run: all is delivered once, ordered traffic in order, and repeats exactly") {
  std::uint64_t fingerprints[2] = {0, 0};
  for (const char* routing : {"minimal", "adaptive"}) {
    for (std::uint64_t& fingerprint : fingerprints) {
      // The edge links of two NICs and one between switches, at different times and one of them twice.
      FaultRig rig(with({{"down", "n0", 100'000'000, 4 * s, ""},
                         {"down", "n5", 120'000'000, 3 * s, ""},
                         {"down", "s0-s1", 150'000'000, 5 * s, ""},
                         {"down", "s0-s1", 6 * s, 9 * s, ""}},
                        routing));
      const RandomStream draw{3, 0, Purpose::test};
      for (std::uint32_t n = 0; n < 3000; ++n) {
        const std::uint32_t source = draw.below(4 * n, 8);
        const std::uint32_t target = (source + 1 + draw.below(4 * n + 1, 7)) % 8;
        const bool ordered = draw.below(4 * n + 2, 2) == 0;
        rig.submit_at(draw.below(4 * n + 3, 300'000'000), transfer_between(source, target, 1 + n * 7, ordered));
      }
      rig.check_nothing_lost();
      CHECK(rig.faults().network_timeouts > 0);
      CHECK(rig.faults().pieces_lost > 0);
      CHECK(rig.faults().pieces_sent_again > 0);
      CHECK(rig.failures.empty());
      for (std::uint32_t source = 0; source < 8; ++source) {
        for (std::uint32_t target = 0; target < 8; ++target) {
          std::uint64_t last_ps = 0;
          for (const std::uint32_t handle : rig.delivery_order) {
            const Transfer& transfer = rig.transfers[handle];
            if (!transfer.ordered || transfer.source.value != source || transfer.target.value != target) continue;
            CHECK(rig.submitted_ps[handle] >= last_ps);
            last_ps = rig.submitted_ps[handle];
          }
        }
      }
      fingerprint = rig.fingerprint;
    }
    CHECK(fingerprints[0] == fingerprints[1]);
  }
}

TEST_CASE("a dead global link loses packets until the sweep at 10 s, and none after it") {
  // Group 0 to group 1 by two links. Both directions of that at switch 0 are dead from 2 s on; NIC 2 hangs on
  // switch 1, which does not know it before the manager's sweep.
  const SampleMachine plain = with({{"lanes", "n0", 0, 0, "lanes 4"}});
  const Dragonfly dragonfly(plain.spec());
  const GlobalEnd dead = dragonfly.global_ends({0}, {1})[0];
  const std::uint32_t nic = dead.near.value == 1 ? 0 : 2;
  const std::string cable = "s" + std::to_string(dead.near.value) + "-s" + std::to_string(dead.far.value);
  struct Row {
    std::uint64_t from_ps;
    bool loses;
  };
  for (const Row& row :
       {Row{1 * s, false}, Row{3 * s, true}, Row{9 * s, true}, Row{10 * s, false}, Row{15 * s, false}}) {
    CAPTURE(row.from_ps);
    FaultRig rig(with({{"down", cable, 2 * s, 0, ""}}));
    for (std::uint32_t n = 0; n < 50; ++n) {
      rig.submit_at(row.from_ps + n * 1'000'000, transfer_between(nic, 8 + n % 8, 2048, false));
    }
    rig.check_nothing_lost();
    CHECK((rig.faults().pieces_lost > 0) == row.loses);
    CHECK((rig.faults().network_timeouts > 0) == row.loses);
    CHECK(rig.failures.empty());
  }
}

TEST_CASE("the switch of a dead link knows at once and takes another") {
  const SampleMachine plain = with({{"lanes", "n0", 0, 0, "lanes 4"}});
  const Dragonfly dragonfly(plain.spec());
  const GlobalEnd dead = dragonfly.global_ends({0}, {1})[0];
  const std::string cable = "s" + std::to_string(dead.near.value) + "-s" + std::to_string(dead.far.value);
  FaultRig rig(with({{"down", cable, 2 * s, 0, ""}}));
  for (std::uint32_t n = 0; n < 50; ++n) {
    rig.submit_at(3 * s + n * 1'000'000, transfer_between(2 * dead.near.value, 8 + n % 8, 2048, false));
  }
  rig.check_nothing_lost();
  CHECK(rig.faults().pieces_lost == 0);
}

TEST_CASE("a switch or link that is drained loses no packet, ordered flows that never pause included") {
  struct Row {
    std::string kind;
    bool loses;
  };
  // Switch 1 carries traffic of others only. The order of 2 s is deployed at 10 s, and the switch is out at 11.001 s.
  for (const Row& row : {Row{"drain", false}, Row{"down", true}}) {
    CAPTURE(row.kind);
    FaultRig rig(with({{row.kind, "s1", row.kind == "down" ? 11'001'000'000'000 : 2 * s, 20 * s, ""}}));
    std::uint32_t flows = 0;
    for (std::uint32_t source = 0; source < 8; ++source) {
      for (std::uint32_t target = 8; target < 32; target += 5) {
        if (source / 2 == 1) continue;
        ++flows;
        // Around the instant of the new routes, and around that of the end.
        for (const std::uint64_t around_ps : {10 * s, std::uint64_t{11'001'000'000'000}}) {
          for (std::uint32_t n = 0; n < 20; ++n) {
            rig.submit_at(around_ps - 20'000'000 + n * 2'000'000 + flows * 10'000,
                          transfer_between(source, target, 20'000, n % 2 == 0));
          }
        }
      }
    }
    rig.check_nothing_lost();
    CHECK((rig.faults().pieces_lost > 0) == row.loses);
    CHECK((rig.faults().network_timeouts > 0) == row.loses);
  }
}

TEST_CASE("what cannot be reached any more ends in a failure after the last retry, and others go on") {
  for (const bool ordered : {true, false}) {
    CAPTURE(ordered);
    FaultRig rig(with({{"down", "n1", 1 * s, 0, ""}}));
    rig.submit_at(2 * s, transfer_between(0, 1, 2048, ordered));
    rig.submit_at(2 * s + 1'000'000, transfer_between(0, 2, 50'000, ordered));
    rig.engine.run(never);
    CHECK(rig.network.at_rest());
    CHECK(rig.network.credit_bytes_outstanding() == 0);
    REQUIRE(rig.failures.size() == 1);
    CHECK(rig.failures[0].handle == 0);
    CHECK(!rig.failures[0].delivered);
    // Five time-outs and the delays of 0, 4, 8 and 12 s.
    CHECK(rig.failures[0].at_ps == 2 * s + 5 * epoch + 24 * s);
    CHECK(rig.faults().network_timeouts == 5);
    CHECK(rig.outcomes[1].acknowledged_ps > 0);
  }
}

TEST_CASE("a long transfer that fails leaves nothing behind, and what follows in its flow fails or arrives in order") {
  FaultRig rig(with({{"down", "n1", 1 * s, 40 * s, ""}}));
  for (std::uint32_t n = 0; n < 5; ++n) rig.submit_at(2 * s + n, transfer_between(0, 1, 300'000));
  rig.submit_at(50 * s, transfer_between(0, 1, 300'000));
  rig.engine.run(never);
  CHECK(rig.network.at_rest());
  CHECK(rig.network.credit_bytes_outstanding() == 0);
  CHECK(rig.failures.size() + rig.acknowledged_count == 6);
  CHECK(!rig.failures.empty());
  CHECK(rig.outcomes[5].acknowledged_ps > 50 * s);
  CHECK(std::is_sorted(rig.delivery_order.begin(), rig.delivery_order.end()));
}

TEST_CASE("an acknowledgement that is lost makes no second delivery") {
  // Only the way home is down, so the packet is there at once and its source hears of it after a time-out.
  FaultRig rig(with({{"down", "n1>s0", 1 * s, 2 * s, ""}}));
  rig.submit_at(1 * s, transfer_between(0, 1, 2048));
  rig.check_nothing_lost();  // the rig itself refuses a second delivery
  CHECK(rig.outcomes[0].delivered_ps == 1 * s + 454'480);
  CHECK(rig.outcomes[0].acknowledged_ps > 1 * s + epoch);
  CHECK(rig.faults().network_timeouts == 1);
}

TEST_CASE("random flaps come as often as asked for, and both directions of a cable see the same") {
  // A link of each NIC goes down 36 times an hour: once in 100 s. A packet a second over 1000 s.
  FaultRig rig(with({{"flaps", "n0", 0, 0,
                      "rate_ppb 10000000\nfaults.0.least_ps 3000000000000\nfaults.0.most_ps "
                      "5000000000000"}}));
  for (std::uint64_t n = 0; n < 1000; ++n) rig.submit_at((n + 1) * s, transfer_between(0, 1, 64, false));
  rig.check_nothing_lost();
  // 10 flaps of 4 s in 1000 s are expected, so 40 of the packets meet one.
  CHECK(rig.faults().network_timeouts > 10);
  CHECK(rig.faults().network_timeouts < 200);
}

TEST_CASE("links that are absent are never taken, and a scenario names what is wrong with it") {
  FaultRig rig(with({{"absent", "s0-s1", 0, 0, ""}}));
  for (std::uint32_t n = 0; n < 20; ++n) rig.submit_at(1 + n, transfer_between(0, 2, 4096, n % 2 == 0));
  rig.check_nothing_lost();
  CHECK(rig.faults().pieces_lost == 0);
  for (const auto& outcome : rig.outcomes) CHECK(outcome.switch_hops == 2);

  const std::vector<NicId> job = {{0}, {1}, {2}};  // two on s0, one on s1
  CHECK(!rig.network.cut_off(job));                // by another switch of the group
  CHECK(FaultRig(with({{"absent", "n2", 0, 0, ""}})).network.cut_off(job) == std::pair{NicId{0}, NicId{2}});
  CHECK(FaultRig(with({{"absent", "s1", 0, 0, ""}})).network.cut_off(job) == std::pair{NicId{0}, NicId{2}});
  CHECK(!FaultRig(with({{"absent", "n3", 0, 0, ""}})).network.cut_off(job));
  CHECK(!FaultRig(with({{"down", "n2", 0, 0, ""}})).network.cut_off(job));  // it will come again

  const auto sentence_of = [](const Line& line) -> std::string {
    try {
      FaultRig bad(with({line}));
    } catch (const SpecError& error) {
      return error.what();
    }
    return "nothing";
  };
  CHECK(sentence_of({"down", "s0-s99", 0, 0, ""}) == "faults.0.where = `s99`: accepted are s0 to s15 and n0 to n31");
  CHECK(sentence_of({"down", "n0-n1", 0, 0, ""}) == "faults.0.where = `n0-n1`: no link leads from one to the other");
  CHECK(sentence_of({"down", "s0-s1.1", 0, 0, ""}) ==
        "faults.0.where = `s0-s1.1`: the parallel links are numbered 0 to 0");
  CHECK(sentence_of({"sinks", "n0", 0, 0, ""}).starts_with("faults.0.kind = `sinks`: accepted are down, absent"));
}

}  // namespace dryfly::fabric
