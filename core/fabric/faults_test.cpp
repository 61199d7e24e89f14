// Scenarios of faults, each with a small table of what is expected. Numbers are those of sample_machine.hpp: 25 GB/s,
// 2,048 B of payload and 64 B of headers in a packet, so 84,480 ps of a full packet on a link.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/fabric/rig.hpp"
#include "oracle/unloaded.hpp"

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
  machine.more +=
      "fabric.manager.topology_sweep_ps 10000000000000\nfabric.manager.routing_sweep_ps 5000000000000\n"
      "fabric.manager.deployment_sweep_ps 10000000000000\nfabric.packet.age_ps 1001000000000\n"
      "nic.retry.timeout_ps 1073741824000\nnic.retry.count 4\nnic.retry.delay.0_ps 0\n"
      "nic.retry.delay.1_ps 4000000000000\nnic.retry.delay.2_ps 8000000000000\n"
      "nic.retry.delay.3_ps 12000000000000\nfaults.seed 1\nfaults.count " +
      std::to_string(lines.size()) + "\n";
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
      CHECK(rig.faults().packets_lost == row.timeouts);
    }
  }
}

}  // namespace dryfly::fabric
