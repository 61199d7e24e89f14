// The invariants of the fabric under load that it cannot carry, with buffers that hold one packet.
#include <doctest/doctest.h>

#include <chrono>
#include <map>

#include "testing/rig.hpp"

namespace dryfly::fabric {
namespace {

enum class Pattern { uniform, incast, adversarial, permutation };

std::uint32_t target_of(Pattern pattern, const Dragonfly& dragonfly, std::uint32_t source, std::uint64_t draw) {
  const std::uint32_t nics = dragonfly.nic_count();
  const std::uint32_t nics_per_group = nics / dragonfly.group_count();
  std::uint32_t target = static_cast<std::uint32_t>(draw % nics);
  if (pattern == Pattern::incast) target = static_cast<std::uint32_t>(draw % 2);
  // All of a group to the next group: one pair of global links for everything.
  if (pattern == Pattern::adversarial) target = (source + nics_per_group) % nics;
  if (pattern == Pattern::permutation) target = nics - 1 - source;
  return target != source ? target : (target + 1) % nics;
}

// Transfers of 0 to 20,000 bytes from every NIC, all submitted within 5 us: far more than the links can carry.
void overload(Rig& rig, Pattern pattern, std::uint64_t seed) {
  const RandomStream random{seed, static_cast<std::uint64_t>(pattern), Purpose::test};
  std::uint64_t draws = 0;
  for (std::uint32_t source = 0; source < rig.dragonfly.nic_count(); ++source) {
    for (int i = 0; i < 40; ++i) {
      const std::uint32_t target = target_of(pattern, rig.dragonfly, source, random.draw(draws++));
      const std::uint32_t size = random.below(draws++, 8) == 0 ? 0 : random.below(draws++, 20'000);
      const bool ordered = random.below(draws++, 2) == 0;
      rig.submit_at(random.below(draws++, 5'000'000), transfer_between(source, target, size, ordered));
    }
  }
}

// Order of submission is order of event: by instant, then by handle.
void check_order_of_flows(const Rig& rig) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::uint64_t, std::uint32_t>> last;
  for (const std::uint32_t handle : rig.delivery_order) {
    const Transfer& transfer = rig.transfers[handle];
    if (!transfer.ordered) continue;
    const std::pair flow{transfer.source.value, transfer.target.value};
    const std::pair<std::uint64_t, std::uint32_t> here{rig.submitted_ps[handle], handle};
    const auto before = last.find(flow);
    if (before != last.end()) REQUIRE(before->second < here);
    last[flow] = here;
  }
}

SampleMachine tiny(const std::string& routing) {
  SampleMachine machine;
  machine.routing = routing;
  machine.groups = 5;
  machine.input_buffer_bytes = 2'112;  // one packet
  machine.window_packets = 16;
  return machine;
}

TEST_CASE("under overload everything arrives, bytes and credits are conserved, and flows keep their order") {
  for (const char* routing : {"minimal", "adaptive"}) {
    for (const Pattern pattern : {Pattern::uniform, Pattern::incast, Pattern::adversarial, Pattern::permutation}) {
      for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        CAPTURE(routing);
        CAPTURE(static_cast<int>(pattern));
        CAPTURE(seed);
        Rig rig{tiny(routing)};
        overload(rig, pattern, seed);
        std::uint64_t packets = 0;
        for (const Transfer& transfer : rig.transfers) {
          packets += transfer.size.count == 0 ? 1 : (transfer.size.count + 2'047) / 2'048;
        }
        rig.engine.run(never);
        CHECK(rig.network.at_rest());
        CHECK(rig.network.credit_bytes_outstanding() == 0);
        CHECK(rig.acknowledged_count == rig.transfers.size());
        CHECK(rig.network.totals().payload_bytes == rig.submitted_bytes);
        CHECK(rig.network.totals().pieces == packets);
        check_order_of_flows(rig);
      }
    }
  }
}

TEST_CASE("in the middle of a run the network is not at rest and holds credits") {
  Rig rig{tiny("adaptive")};
  overload(rig, Pattern::uniform, 1);
  rig.engine.run(Instant{10'000'000});
  CHECK(!rig.network.at_rest());
  CHECK(rig.network.credit_bytes_outstanding() > 0);
}

TEST_CASE("the same run twice is the same to the picosecond, also side by side; another seed is another run") {
  SampleMachine machine = tiny("adaptive");
  Rig one{machine};
  Rig two{machine};
  machine.seed = 2;
  Rig other{machine};
  for (Rig* rig : {&one, &two, &other}) overload(*rig, Pattern::uniform, 1);
  one.engine.run(never);
  // In steps, and the third in between: where a run pauses and what else runs in the process changes nothing.
  for (std::uint64_t limit = 0; two.engine.next() != never; limit += 777'777) {
    two.engine.run(Instant{limit});
    other.engine.run(Instant{limit});
  }
  other.engine.run(never);
  CHECK(one.fingerprint == two.fingerprint);
  CHECK(one.fingerprint != other.fingerprint);
}

TEST_CASE("a nanosecond more on one link changes the fingerprint") {
  SampleMachine machine = tiny("adaptive");
  Rig plain{machine};
  machine.more =
      "fabric.extra_flight.count 1\nfabric.extra_flight.0.from s0\nfabric.extra_flight.0.to s1\n"
      "fabric.extra_flight.0.ps 1000\n";
  Rig longer{machine};
  for (Rig* rig : {&plain, &longer}) {
    overload(*rig, Pattern::uniform, 1);
    rig->engine.run(never);
  }
  CHECK(plain.fingerprint != longer.fingerprint);
}

// Adversarial traffic over one global link: minimal routing is bound by it, adaptive routing spreads over the groups.
TEST_CASE("adaptive routing carries adversarial traffic at least twice as fast as minimal routing") {
  std::map<std::string, std::uint64_t> end_ps;
  for (const char* routing : {"minimal", "adaptive"}) {
    SampleMachine machine;
    machine.groups = 9;
    machine.nodes = 16;
    machine.global_links = 1;
    machine.routing = routing;
    Rig rig{machine};
    for (std::uint32_t source = 0; source < rig.dragonfly.nic_count(); ++source) {
      const std::uint32_t target = (source + 16) % rig.dragonfly.nic_count();
      rig.submit_at(0, transfer_between(source, target, 1 << 20, false));
    }
    rig.engine.run(never);
    end_ps[routing] = rig.engine.now().ps;
    // 16 MiB over one link of 25 GB/s x 2048 / 2112 take at least 692 us.
    if (std::string(routing) == "minimal") CHECK(rig.engine.now().ps > 692'000'000);
  }
  CHECK(end_ps["adaptive"] * 2 < end_ps["minimal"]);
}

// Every NIC of a group sends to the next group without a pause, so the one link between them fills and flows drain.
TEST_CASE("flows that never pause leave a full link, and nothing overtakes while they do") {
  std::map<std::string, std::uint64_t> end_ps;
  for (const char* routing : {"minimal", "adaptive"}) {
    SampleMachine machine;
    machine.groups = 9;
    machine.nodes = 16;
    machine.global_links = 1;
    machine.routing = routing;
    Rig rig{machine};
    const std::uint32_t nics = rig.dragonfly.nic_count();
    for (std::uint32_t n = 0; n < 100; ++n) {
      for (std::uint32_t source = 0; source < nics; ++source) {
        rig.submit_at(n, transfer_between(source, (source + 16) % nics, 1 + (n * 4'099 + source * 577) % 20'000));
      }
    }
    rig.engine.run(never);
    CHECK(rig.network.at_rest());
    CHECK(rig.network.credit_bytes_outstanding() == 0);
    CHECK(rig.acknowledged_count == rig.transfers.size());
    check_order_of_flows(rig);
    end_ps[routing] = rig.engine.now().ps;
  }
  CHECK(end_ps["adaptive"] * 3 < end_ps["minimal"] * 2);
}

TEST_CASE("transfers to two end-points of a NIC are two flows") {
  Rig rig{SampleMachine{}};
  Transfer other = transfer_between(0, 31, 2'048);
  other.flow = flow_limit - 1;
  rig.submit_at(0, transfer_between(0, 31, 1'000'000));
  rig.submit_at(1, other);
  rig.engine.run(never);
  CHECK(rig.outcomes[1].delivered_ps < rig.outcomes[0].delivered_ps);
}

// Window, links and switches carry one long transfer at the rate of the link.
TEST_CASE("one long transfer across groups runs at the rate of the link") {
  Rig rig{SampleMachine{}};
  rig.submit_at(0, transfer_between(0, 31, 10'000'000, false));
  rig.engine.run(never);
  // 4,883 packets of at most 2,112 B at 40 ps: 412.5 us, and the way of under 2 us.
  CHECK(rig.outcomes[0].delivered_ps > 412'000'000);
  CHECK(rig.outcomes[0].delivered_ps < 415'000'000);
}

TEST_CASE("all of Aurora is made in under two seconds and carries a transfer from end to end") {
  SampleMachine machine;
  machine.groups = 166;
  machine.switches = 32;
  machine.nodes = 64;
  machine.nics_per_node = 8;
  const auto start = std::chrono::steady_clock::now();
  Rig rig{machine};
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  CHECK(took.count() < 2.0);
  CHECK(rig.dragonfly.nic_count() == 84'992);
  rig.submit_at(0, transfer_between(0, 84'991, 1 << 20));
  rig.engine.run(never);
  CHECK(rig.network.at_rest());
  CHECK(rig.outcomes[0].delivered_ps > 0);
}

}  // namespace
}  // namespace dryfly::fabric
