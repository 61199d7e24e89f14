// The trackers of the NICs at their limits. Numbers are those of sample_machine.hpp: NIC 2k and 2k+1 at switch k, a
// packet of 2,048 B of payload takes 84,480 ps on a link, an empty one 2,560 ps. A message of one packet to a neighbour
// on the same switch is acknowledged within 2 us.
#include "core/network/packet/connections.hpp"

#include <doctest/doctest.h>

#include <string>

#include "testing/rig.hpp"

namespace dryfly::fabric {
namespace {

constexpr std::uint64_t us = 1'000'000;
constexpr std::uint64_t ms = 1'000 * us;
constexpr std::uint64_t idle = 30 * us;
constexpr std::uint64_t close = 2 * us;
constexpr std::uint64_t handling = 20 * us;
constexpr std::uint64_t pause = 70 * ms;
constexpr std::uint64_t longest_pause = 1'000 * ms;

struct Entries {
  std::uint64_t sources = 4'096;
  std::uint64_t targets = 8'192;
  std::uint64_t results = 2'048;
  std::uint64_t at_once = 3;
  std::uint64_t idle_ps = idle;
  std::uint64_t pause_ps = pause;
  std::uint64_t pause_max_ps = longest_pause;
};

SampleMachine with(const Entries& entries) {
  SampleMachine machine;
  machine.routing = "minimal";
  const auto add = [&machine](const std::string& name, std::uint64_t value) {
    machine.more += name + " " + std::to_string(value) + "\n";
  };
  add("fabric.nic.trackers.source_connections", entries.sources);
  add("fabric.nic.trackers.target_connections", entries.targets);
  add("fabric.nic.trackers.results", entries.results);
  add("fabric.nic.trackers.idle_ps", entries.idle_ps);
  add("fabric.nic.trackers.close_ps", close);
  add("nic.retry.refused.handling_ps", handling);
  add("nic.retry.refused.at_once", entries.at_once);
  add("nic.retry.refused.pause_ps", entries.pause_ps);
  add("nic.retry.refused.pause_max_ps", entries.pause_max_ps);
  add("nic.retry.refused.batch", 4);
  return machine;
}

struct TrackerRig : Rig {
  using Rig::Rig;
  // Everything submitted has arrived once, of each flow in order, and nothing is left anywhere.
  void check_nothing_lost() {
    engine.run(never);
    CHECK(network.at_rest());
    CHECK(network.credit_bytes_outstanding() == 0);
    CHECK(acknowledged_count == transfers.size());
    CHECK(delivery_order.size() == transfers.size());
    CHECK(network.totals().payload_bytes == submitted_bytes);
    for (std::size_t place = 1; place < delivery_order.size(); ++place) {
      for (std::size_t before = 0; before < place; ++before) {
        const Transfer& early = transfers[delivery_order[before]];
        const Transfer& late = transfers[delivery_order[place]];
        if (early.source != late.source || early.target != late.target || early.flow != late.flow) continue;
        CHECK(delivery_order[before] < delivery_order[place]);
      }
    }
  }
  TrackerTotals trackers() const { return network.totals().trackers; }
  std::uint64_t sent_again() const { return network.totals().faults.pieces_sent_again; }
  // Of all NICs: answers that refused a packet, and of these those that named its sequence.
  std::uint64_t refusals() const { return sum(&NicAccount::refusals); }
  std::uint64_t sequence_errors() const { return sum(&NicAccount::sequence_errors); }

 private:
  std::uint64_t sum(std::uint64_t NicAccount::* of) const {
    std::uint64_t all = 0;
    for (const auto& [nic, account] : network.nic_accounts(engine.now())) all += account.*of;
    return all;
  }
};

Transfer of_flow(std::uint32_t source, std::uint32_t target, std::uint16_t flow, std::uint64_t bytes = 8) {
  Transfer transfer = transfer_between(source, target, bytes);
  transfer.flow = flow;
  return transfer;
}

}  // namespace

TEST_CASE("a connection is opened by the first packet, kept for the idle time, and opened anew behind its close") {
  TrackerRig rig{with({})};
  for (const std::uint64_t at_ps : {0 * us, 20 * us, 40 * us, 200 * us}) rig.submit_at(at_ps, of_flow(0, 1, 0));
  rig.check_nothing_lost();
  CHECK(rig.trackers().connections_opened == 2);
  CHECK(rig.trackers().sources_max == 1);
  CHECK(rig.trackers().targets_max == 1);
  const auto by_nic = rig.network.trackers_by_nic();
  CHECK(by_nic.at({0}).connections_opened == 2);
  CHECK(by_nic.at({1}).connections_opened == 0);
  CHECK(by_nic.at({1}).targets_max == 1);
}

TEST_CASE("what is not ordered needs no connection") {
  TrackerRig rig{with({.sources = 1, .targets = 1, .results = 1})};
  for (std::uint32_t n = 0; n < 20; ++n) rig.submit_at(0, transfer_between(0, 1 + n, 50'000, false));
  rig.check_nothing_lost();
  CHECK(rig.trackers().connections_opened == 0);
  CHECK(rig.sent_again() == 0);
}

// A source with two entries: the third flow waits until the first is idle and its close is over.
TEST_CASE("a source with N entries sends to its (N+1)th target when a connection has been closed for it") {
  TrackerRig rig{with({.sources = 2})};
  for (std::uint32_t n = 0; n < 3; ++n) rig.submit_at(0, of_flow(0, 1 + n, 0));
  rig.check_nothing_lost();
  CHECK(rig.trackers().source_waits == 1);
  CHECK(rig.trackers().connections_opened == 3);
  CHECK(rig.trackers().sources_max == 2);
  CHECK(rig.trackers().target_refusals == 0);
  const std::uint64_t first_idle_ps = std::min(rig.outcomes[0].acknowledged_ps, rig.outcomes[1].acknowledged_ps);
  Rig alone{with({})};
  alone.submit_at(first_idle_ps + close, of_flow(0, 3, 0));
  alone.engine.run(never);
  CHECK(rig.outcomes[2].delivered_ps == alone.outcomes[0].delivered_ps);
}

TEST_CASE("one source to many targets with few entries gets everything through, each target in its turn") {
  TrackerRig rig{with({.sources = 3})};
  for (std::uint32_t round = 0; round < 4; ++round) {
    for (std::uint32_t n = 1; n < 32; ++n) rig.submit_at(round * us, of_flow(0, n, 0, 10'000));
  }
  rig.check_nothing_lost();
  CHECK(rig.trackers().sources_max == 3);
  CHECK(rig.trackers().source_waits > 0);
}

// Two entries at the target, three sources. The third is refused, tried again at once three times, 20 us for each, and
// refused again: the others' entries are closed 32 us after their last answers. So what comes at about 45 us is taken.
TEST_CASE("a target with N entries refuses the (N+1)th source, which tries again until another is closed") {
  TrackerRig rig{with({.targets = 2})};
  for (std::uint32_t n = 0; n < 3; ++n) rig.submit_at(n * 10, of_flow(1 + n, 0, 0));
  rig.check_nothing_lost();
  CHECK(rig.trackers().target_refusals == 2);
  CHECK(rig.refusals() == 2);
  CHECK(rig.sequence_errors() == 0);
  CHECK(rig.sent_again() == 2);
  CHECK(rig.trackers().pauses == 0);
  CHECK(rig.trackers().targets_max == 2);
  CHECK(rig.network.trackers_by_nic().at({0}).targets_max == 2);
  std::uint64_t last_ps = 0;
  for (const auto& outcome : rig.outcomes) last_ps = std::max(last_ps, outcome.delivered_ps);
  CHECK(last_ps > 2 * handling);
  CHECK(last_ps < 2 * handling + 6 * us);
}

// The two keep their entries by sending every 10 us for 300 ms. Three rounds at once, then pauses of 70 to 140 ms,
// 140 to 280 ms, and so on: the third is refused in each round until they stop.
TEST_CASE("a source that is refused again and again pauses for twice as long each time") {
  TrackerRig rig{with({.targets = 2})};
  rig.submit_at(100, of_flow(3, 0, 0));
  for (std::uint64_t at_ps = 0; at_ps < 300 * ms; at_ps += 10 * us) {
    rig.submit_at(at_ps, of_flow(1, 0, 0));
    rig.submit_at(at_ps, of_flow(2, 0, 0));
  }
  rig.engine.run(never);
  CHECK(rig.network.at_rest());
  CHECK(rig.acknowledged_count == rig.transfers.size());
  const TrackerTotals trackers = rig.trackers();
  CHECK(trackers.pauses >= 2);
  CHECK(trackers.pauses <= 3);
  CHECK(trackers.target_refusals == 3 + trackers.pauses);
  CHECK(trackers.longest_pause_ps >= pause << (trackers.pauses - 1));
  CHECK(trackers.longest_pause_ps <= pause << trackers.pauses);
  CHECK(rig.outcomes[0].delivered_ps > 300 * ms);
}

// 2^44 ps, 17.6 s, doubled twenty times is more than 64 bits hold. One source keeps the only entry for good.
TEST_CASE("pauses grow to the longest and stay there, however often they are doubled") {
  constexpr std::uint64_t longest = std::uint64_t{1} << 44;
  TrackerRig rig{
      with({.targets = 1, .at_once = 0, .idle_ps = 50 * longest, .pause_ps = longest, .pause_max_ps = longest})};
  rig.submit_at(0, of_flow(1, 0, 0));
  rig.submit_at(us, of_flow(2, 0, 0));
  rig.engine.run(Instant{24 * longest});
  // Each round takes a pause, the handling and less than 2 us on the links, and the first one begins within 2 us.
  CHECK(rig.trackers().pauses == 24);
  CHECK(rig.trackers().longest_pause_ps == longest);
}

// 24 packets in one message are on their way, in 2.03 us, before the first answer is home, and there is room for 16
// results: the 17th packet is refused, and the seven behind it. They go in two batches of four, with which clears of
// all the others come.
TEST_CASE("a target without room for results refuses, and takes the rest in batches of four") {
  TrackerRig rig{with({.results = 16})};
  rig.submit_at(0, of_flow(0, 30, 0, 24 * 2'048));
  rig.check_nothing_lost();
  const TrackerTotals trackers = rig.trackers();
  CHECK(trackers.results_max == 16);
  CHECK(trackers.result_refusals == 1);
  CHECK(trackers.sequence_refusals == 7);
  CHECK(rig.sent_again() == 8);
  CHECK(trackers.pauses == 0);
  CHECK(rig.outcomes[0].delivered_ps > 2 * handling);
  CHECK(rig.outcomes[0].delivered_ps < 2 * (handling + 5 * us));
}

const std::string fault_elsewhere = fault_times(1) +
                                    "faults.seed 1\nfaults.count 1\n"
                                    "faults.0.kind down\nfaults.0.where n20\nfaults.0.from_ps 0\n";

// The same 24 packets as above: one finds no room, seven come behind it, and all eight are sent again.
TEST_CASE("a refused packet counts once, by its reason, with faults and without") {
  for (const bool faults : {false, true}) {
    CAPTURE(faults);
    SampleMachine machine = with({.results = 16});
    if (faults) machine.more += fault_elsewhere;
    TrackerRig rig{machine};
    rig.network.restart(Instant{0});
    rig.submit_at(0, of_flow(0, 30, 0, 24 * 2'048));
    rig.check_nothing_lost();
    CHECK(rig.trackers().result_refusals == 1);
    CHECK(rig.trackers().sequence_refusals == 7);
    CHECK(rig.network.totals().faults.pieces_refused == 0);
    CHECK(rig.refusals() == 8);
    CHECK(rig.sequence_errors() == 7);
    CHECK(rig.sent_again() == 8);
    CHECK(rig.network.nic_accounts(rig.engine.now()).at({0}).sent_again == 8);
  }
}

// At most the 64 packets of the window are sent and not known to be home.
TEST_CASE("a steady flow needs as many results as it has packets under way") {
  TrackerRig rig{with({.results = 64})};
  rig.submit_at(0, of_flow(0, 30, 0, 1'000 * 2'048));
  rig.check_nothing_lost();
  CHECK(rig.sent_again() == 0);
  CHECK(rig.trackers().results_max <= 64);
  CHECK(rig.trackers().results_max > 16);
}

TEST_CASE("nothing is lost and all ends where every table is as small as can be") {
  for (const std::uint64_t entries : {1, 2, 5}) {
    TrackerRig rig{with({.sources = entries, .targets = entries, .results = entries})};
    const RandomStream random{7, entries, Purpose::test};
    for (std::uint32_t n = 0; n < 120; ++n) {
      const std::uint32_t source = random.below(3 * n, 32);
      const std::uint32_t target = n % 2 == 0 ? random.below(3 * n + 1, 32) : 5;
      rig.submit_at(n * us / 4,
                    of_flow(source, target, static_cast<std::uint16_t>(n % 3), random.below(3 * n + 2, 9'000)));
    }
    rig.check_nothing_lost();
    CHECK(rig.trackers().sources_max <= entries);
    CHECK(rig.trackers().targets_max <= entries);
    CHECK(rig.trackers().results_max <= entries);
    CHECK(rig.sent_again() > 0);
  }
}

TEST_CASE("the same again gives the same, and tables that are never full change nothing") {
  const auto fingerprint = [](const SampleMachine& machine) {
    Rig rig{machine};
    const RandomStream random{9, 0, Purpose::test};
    for (std::uint32_t n = 0; n < 400; ++n) {
      rig.submit_at(n * us / 8,
                    of_flow(random.below(2 * n, 32), n % 3 == 0 ? 5 : random.below(2 * n + 1, 32), 0, 6'000));
    }
    rig.engine.run(never);
    return rig.fingerprint;
  };
  const Entries few{.sources = 2, .targets = 2, .results = 20};
  CHECK(fingerprint(with(few)) == fingerprint(with(few)));
  SampleMachine without = with({});
  without.more = "fabric.extra_flight.count 0\n";
  CHECK(fingerprint(with({})) == fingerprint(without));
  CHECK(fingerprint(with(few)) != fingerprint(without));
}

// Link faults and full tables at a time: what was lost is sent again by its time-out, what was refused by its turn.
TEST_CASE("full tables and a flap lose nothing and end") {
  SampleMachine machine = with({.sources = 3, .targets = 3, .results = 12});
  machine.more += fault_times(4) +
                  "faults.seed 1\nfaults.count 1\nfaults.0.kind down\nfaults.0.where n5\n"
                  "faults.0.from_ps 20000000\nfaults.0.until_ps 90000000\n";
  TrackerRig rig{machine};
  rig.network.restart(Instant{0});
  const RandomStream random{11, 0, Purpose::test};
  for (std::uint32_t n = 0; n < 200; ++n) {
    rig.submit_at(n * us, of_flow(random.below(2 * n, 32), n % 2 == 0 ? 5 : random.below(2 * n + 1, 32), 0, 12'000));
  }
  rig.check_nothing_lost();
  CHECK(rig.network.totals().faults.pieces_lost > 0);
  CHECK(rig.sent_again() > 0);
  CHECK(rig.network.totals().faults.transfers_failed == 0);
}

}  // namespace dryfly::fabric
