// Holds every implementation of core/contract/network.hpp to what the contract promises. A new one is one line in
// `Networks` below; one whose submitters see a Carrier only, one in `Carriers`.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "core/contract/network.hpp"
#include "core/contract/observer.hpp"
#include "core/engine/engine.hpp"
#include "core/network/flow/flow_network.hpp"
#include "core/network/packet/packet_network.hpp"
#include "core/network/packet/regional_network.hpp"
#include "core/network/shared_network.hpp"
#include "core/spec/fields.hpp"
#include "core/unit/random.hpp"
#include "testing/fake_network.hpp"
#include "testing/sample_machine.hpp"

namespace dryfly {
namespace {

constexpr std::uint64_t us = 1'000'000;
constexpr std::uint64_t s = 1'000'000'000'000;

// --- the implementations ------------------------------------------------------------------------------------------
// Each is made for the sample machine. A network in parts has an engine and a Carrier for each part.

struct Machine {
  explicit Machine(const fabric::SampleMachine& sample) : spec(sample.spec()), dragonfly(spec) {}
  Spec spec;
  Dragonfly dragonfly;
};

// The link of NIC 1 is down from 1 s on, for ever.
fabric::SampleMachine machine_with_fault() {
  fabric::SampleMachine machine;
  machine.more += fabric::fault_times(1) +
                  "faults.seed 1\nfaults.count 1\n"
                  "faults.0.kind down\nfaults.0.where n1\nfaults.0.from_ps 1000000000000\n";
  return machine;
}

template <class One>
struct InOnePart {
  explicit InOnePart(const fabric::SampleMachine& sample) : machine(sample), one(make(engine, machine)) {}
  static std::unique_ptr<One> make(Engine& engine, const Machine& machine) {
    if constexpr (std::is_constructible_v<One, Engine&>) {
      return std::make_unique<One>(engine);
    } else {
      return std::make_unique<One>(engine, machine.dragonfly, machine.spec);
    }
  }
  std::uint32_t parts() const { return 1; }
  std::uint32_t part_of(NicId) const { return 0; }
  Engine& engine_of(std::uint32_t) { return engine; }
  Carrier& carrier(std::uint32_t) { return *one; }
  Network& network() { return *one; }
  NetworkTotals totals() const { return one->totals(); }
  bool at_rest() const { return one->at_rest(); }
  void run() { engine.run(never); }
  // From 1 s on NIC 1 is lost, of a machine_with_fault().
  void begin_fault() {
    if constexpr (std::is_same_v<One, FakeNetwork>) {
      one->cut(NicId{1});
    } else {
      one->restart(Instant{0});
    }
  }

  Machine machine;
  Engine engine;
  std::unique_ptr<One> one;
};

struct InRegions {
  explicit InRegions(const fabric::SampleMachine& sample) : machine(sample), all(machine.dragonfly, machine.spec) {}
  std::uint32_t parts() const { return machine.dragonfly.group_count(); }
  std::uint32_t part_of(NicId nic) const { return machine.dragonfly.group_of(machine.dragonfly.switch_of(nic)).value; }
  Engine& engine_of(std::uint32_t part) { return all.engine({part}); }
  Carrier& carrier(std::uint32_t part) { return all.network({part}); }
  NetworkTotals totals() const { return all.totals(); }
  bool at_rest() const { return all.at_rest(); }
  void run() { all.run(1); }

  Machine machine;
  RegionalNetwork all;
};

// A share of a packet network, and another share that submits nothing.
struct InShares {
  explicit InShares(const fabric::SampleMachine& sample)
      : machine(sample), below(engine, machine.dragonfly, machine.spec), all(engine, below), share(all.open_share()) {
    all.open_share().connect(nobody);
  }
  std::uint32_t parts() const { return 1; }
  std::uint32_t part_of(NicId) const { return 0; }
  Engine& engine_of(std::uint32_t) { return engine; }
  Carrier& carrier(std::uint32_t) { return share; }
  NetworkTotals totals() const { return below.totals(); }
  bool at_rest() const { return below.at_rest(); }
  void run() { engine.run(never); }

  struct Nobody final : TransferSink {
    void delivered(std::uint32_t, std::uint32_t) override { FAIL("a transfer of another share"); }
    void acknowledged(std::uint32_t) override { FAIL("a transfer of another share"); }
    void failed(std::uint32_t, bool) override { FAIL("a transfer of another share"); }
  };

  Machine machine;
  Engine engine;
  PacketNetwork below;
  SharedNetwork all;
  SharedNetwork::Share& share;
  Nobody nobody;
};

// NICs that can keep track of little: much is refused, waits and is sent again.
struct ShortOfTrackers : InOnePart<PacketNetwork> {
  explicit ShortOfTrackers(fabric::SampleMachine sample) : InOnePart(with_few(sample)) {}
  static fabric::SampleMachine& with_few(fabric::SampleMachine& sample) {
    sample.more +=
        "fabric.nic.trackers.source_connections 3\nfabric.nic.trackers.target_connections 3\n"
        "fabric.nic.trackers.results 6\nfabric.nic.trackers.idle_ps 32768000\nfabric.nic.trackers.close_ps 2000000\n"
        "nic.retry.refused.handling_ps 20000000\nnic.retry.refused.at_once 3\nnic.retry.refused.pause_ps 68719476000\n"
        "nic.retry.refused.pause_max_ps 17179869000000\nnic.retry.refused.batch 4\n";
    return sample;
  }
};

using Networks = std::tuple<InOnePart<PacketNetwork>, ShortOfTrackers, InOnePart<FlowNetwork>, InOnePart<FakeNetwork>>;
using Carriers = std::tuple<InOnePart<PacketNetwork>, ShortOfTrackers, InOnePart<FlowNetwork>, InOnePart<FakeNetwork>,
                            InRegions, InShares>;
// Those whose pieces cross links, and which tell an observer of it.
using WithLinks = std::tuple<InOnePart<PacketNetwork>, InOnePart<FlowNetwork>>;

// --- who submits, and is told -------------------------------------------------------------------------------------

struct Fate {
  std::uint64_t submitted_ps = 0;
  std::uint64_t delivered_ps = 0;
  std::uint64_t acknowledged_ps = 0;
  std::uint64_t failed_ps = 0;
  std::uint32_t switch_hops = 0;
  std::uint32_t deliveries = 0;
  std::uint32_t ends = 0;  // acknowledged or failed

  bool is(const Fate& other) const {
    return submitted_ps == other.submitted_ps && delivered_ps == other.delivered_ps &&
           acknowledged_ps == other.acknowledged_ps && failed_ps == other.failed_ps &&
           switch_hops == other.switch_hops && deliveries == other.deliveries && ends == other.ends;
  }
};

// Submits transfers from within the engine's events and notes what becomes of each; the handle is its number here.
template <class Implementation>
class Submitter {
 public:
  explicit Submitter(const fabric::SampleMachine& machine) : under_test(machine) {
    for (std::uint32_t part = 0; part < under_test.parts(); ++part) {
      sides_.push_back(std::make_unique<Side>(*this, part));
    }
  }

  std::uint32_t submit_at(std::uint64_t at_ps, Transfer transfer) {
    transfer.handle = static_cast<std::uint32_t>(transfers.size());
    transfers.push_back(transfer);
    fates.push_back({});
    under_test.engine_of(under_test.part_of(transfer.source))
        .schedule(Instant{at_ps},
                  static_cast<std::uint64_t>(ComponentClass::workload) << component_class_shift | transfer.handle);
    return transfer.handle;
  }
  void run() { under_test.run(); }
  void forget() {
    transfers.clear();
    fates.clear();
    deliveries.clear();
  }

  Implementation under_test;
  std::vector<Transfer> transfers;
  std::vector<Fate> fates;
  std::vector<std::uint32_t> deliveries;  // in order; within one part only
  std::function<void(std::uint32_t)> on_delivered;

 private:
  struct Side final : Handler, TransferSink {
    Side(Submitter& its_owner, std::uint32_t its_part)
        : owner(its_owner),
          part(its_part),
          engine(owner.under_test.engine_of(its_part)),
          carrier(owner.under_test.carrier(its_part)) {
      engine.attach(ComponentClass::workload, *this);
      carrier.connect(*this);
    }
    void handle(Event event) override {
      const auto number = static_cast<std::uint32_t>(event.key);
      Fate& fate = owner.fates[number];
      fate.submitted_ps = engine.now().ps;
      inside_submit = true;
      carrier.submit(owner.transfers[number]);
      inside_submit = false;
    }
    void delivered(std::uint32_t number, std::uint32_t switch_hops) override {
      CHECK(!inside_submit);
      CHECK(!owner.under_test.at_rest());
      Fate& fate = owner.fates[number];
      ++fate.deliveries;
      CHECK(fate.ends == 0);
      CHECK(owner.under_test.part_of(owner.transfers[number].target) == part);
      CHECK(engine.now().ps > fate.submitted_ps);
      fate.delivered_ps = engine.now().ps;
      fate.switch_hops = switch_hops;
      owner.deliveries.push_back(number);
      if (owner.on_delivered) owner.on_delivered(number);
    }
    void acknowledged(std::uint32_t number) override {
      CHECK(!inside_submit);
      Fate& fate = owner.fates[number];
      CHECK(owner.under_test.part_of(owner.transfers[number].source) == part);
      CHECK(fate.deliveries == 1);
      ++fate.ends;
      CHECK(engine.now().ps > fate.delivered_ps);
      fate.acknowledged_ps = engine.now().ps;
    }
    void failed(std::uint32_t number, bool was_delivered) override {
      CHECK(!inside_submit);
      Fate& fate = owner.fates[number];
      CHECK(was_delivered == (fate.deliveries == 1));
      ++fate.ends;
      fate.failed_ps = engine.now().ps;
    }
    Submitter& owner;
    std::uint32_t part;
    Engine& engine;
    Carrier& carrier;
    bool inside_submit = false;
  };

  std::vector<std::unique_ptr<Side>> sides_;
};

Transfer between(std::uint32_t source, std::uint32_t target, std::uint64_t bytes, bool ordered = false) {
  Transfer transfer;
  transfer.source = {source};
  transfer.target = {target};
  transfer.size = {bytes};
  transfer.ordered = ordered;
  return transfer;
}

// Transfers of all sizes about the sample machine's 32 NICs, in two classes; every eighth to NIC 0, some of the others
// to where they come from.
template <class Implementation>
void submit_crowd(Submitter<Implementation>& submitter, std::uint64_t from_ps, std::uint32_t count = 600) {
  constexpr std::uint64_t sizes[] = {0, 1, 8, 2047, 2048, 2049, 40'000, 150'000};
  const bool ordered = submitter.under_test.carrier(0).takes_ordered();
  const RandomStream random{7, 0, Purpose::test};
  std::uint64_t draws = 0;
  for (std::uint32_t n = 0; n < count; ++n) {
    const std::uint32_t source = 1 + random.below(draws++, 31);
    const std::uint32_t target = n % 8 == 0 ? 0 : (source + random.below(draws++, 32)) % 32;
    Transfer transfer = between(source, target, sizes[n % 8], ordered && n % 3 == 0);
    transfer.traffic_class = n % 5 == 0 ? TrafficClass::bulk_data : TrafficClass::best_effort;
    submitter.submit_at(from_ps + random.below(draws++, 30 * us), transfer);
  }
}

// Whether this ends the process, as a failed check does.
bool ends_the_process(const std::function<void()>& action) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    (void)!freopen("/dev/null", "w", stderr);
    action();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

// --- what every carrier promises ----------------------------------------------------------------------------------

TEST_CASE_TEMPLATE_DEFINE("each transfer is delivered once and then acknowledged once, and never within a call",
                          Implementation, every_transfer) {
  Submitter<Implementation> submitter{fabric::SampleMachine{}};
  submit_crowd(submitter, 5);
  submitter.run();
  for (const Fate& fate : submitter.fates) {
    CHECK(fate.deliveries == 1);
    CHECK(fate.ends == 1);
    CHECK(fate.failed_ps == 0);
  }
}
TEST_CASE_TEMPLATE_APPLY(every_transfer, Carriers);

TEST_CASE_TEMPLATE_DEFINE("the same submissions have the same fate in every run", Implementation, same_fate) {
  Submitter<Implementation> first{fabric::SampleMachine{.latency_spread_ps = 40'000}};
  Submitter<Implementation> second{fabric::SampleMachine{.latency_spread_ps = 40'000}};
  for (auto* submitter : {&first, &second}) {
    submit_crowd(*submitter, 5);
    submitter->run();
  }
  for (std::size_t n = 0; n < first.fates.size(); ++n) CHECK(second.fates[n].is(first.fates[n]));
}
TEST_CASE_TEMPLATE_APPLY(same_fate, Carriers);

TEST_CASE_TEMPLATE_DEFINE("a handle comes back unchanged, whatever it is and whoever else has it", Implementation,
                          handles) {
  struct Sink final : TransferSink {
    void delivered(std::uint32_t handle, std::uint32_t) override { ++told[handle].first; }
    void acknowledged(std::uint32_t handle) override { ++told[handle].second; }
    std::map<std::uint32_t, std::pair<int, int>> told;
  };
  Implementation under_test{fabric::SampleMachine{}};
  std::vector<Sink> sinks(under_test.parts());
  for (std::uint32_t part = 0; part < under_test.parts(); ++part) under_test.carrier(part).connect(sinks[part]);
  // NICs 0 to 7 are one group.
  for (const std::uint32_t handle : {0U, UINT32_MAX, 0x80000000U, 15U, 15U}) {
    Transfer transfer = between(0, 5, 3000);
    transfer.handle = handle;
    under_test.carrier(under_test.part_of({0})).submit(transfer);
  }
  under_test.run();
  const std::map<std::uint32_t, std::pair<int, int>> expected = {
      {0, {1, 1}}, {15, {2, 2}}, {0x80000000U, {1, 1}}, {UINT32_MAX, {1, 1}}};
  CHECK(sinks[under_test.part_of({0})].told == expected);
}
TEST_CASE_TEMPLATE_APPLY(handles, Carriers);

TEST_CASE_TEMPLATE_DEFINE("who is told of a transfer may submit the next", Implementation, answers) {
  Submitter<Implementation> submitter{fabric::SampleMachine{}};
  // Ten answers between two groups, each submitted at the instant of the delivery.
  std::uint32_t left = 10;
  submitter.transfers.reserve(100);
  submitter.fates.reserve(100);
  const auto at_once = [&](NicId source, NicId target) {
    auto& engine = submitter.under_test.engine_of(submitter.under_test.part_of(source));
    submitter.submit_at(engine.now().ps, between(source.value, target.value, 4000));
  };
  submitter.on_delivered = [&](std::uint32_t number) {
    const Transfer transfer = submitter.transfers[number];
    if (left > 0) {
      --left;
      at_once(transfer.target, transfer.source);
    }
  };
  submitter.submit_at(1, between(2, 30, 4000));
  submitter.run();
  REQUIRE(submitter.fates.size() == 11);
  for (std::size_t n = 1; n < submitter.fates.size(); ++n) {
    CHECK(submitter.fates[n].submitted_ps == submitter.fates[n - 1].delivered_ps);
    CHECK(submitter.fates[n].ends == 1);
  }
}
TEST_CASE_TEMPLATE_APPLY(answers, Carriers);

TEST_CASE_TEMPLATE_DEFINE("it is at rest before the first submission and after the last end, and not between",
                          Implementation, rest) {
  Submitter<Implementation> submitter{fabric::SampleMachine{}};
  CHECK(submitter.under_test.at_rest());
  submit_crowd(submitter, 5, 100);
  CHECK(submitter.under_test.at_rest());
  submitter.run();  // each delivered() looks
  CHECK(submitter.under_test.at_rest());
}
TEST_CASE_TEMPLATE_APPLY(rest, Carriers);

TEST_CASE_TEMPLATE_DEFINE("the totals are those of what was delivered", Implementation, totals) {
  Submitter<Implementation> submitter{fabric::SampleMachine{}};
  submitter.submit_at(1, between(3, 29, 0));
  submitter.run();
  const NetworkTotals one = submitter.under_test.totals();
  CHECK(one.pieces == 1);
  CHECK(one.payload_bytes == 0);
  CHECK(one.piece_hops == submitter.fates[0].switch_hops + 2);  // and the links of the two NICs

  Submitter<Implementation> many{fabric::SampleMachine{}};
  submit_crowd(many, 5);
  many.run();
  const NetworkTotals all = many.under_test.totals();
  std::uint64_t bytes = 0;
  for (const Transfer& transfer : many.transfers) bytes += transfer.size.count;
  CHECK(all.payload_bytes == bytes);
  CHECK(all.pieces >= many.transfers.size());
  CHECK(all.piece_hops >= 2 * all.pieces);
  std::uint64_t pieces_of_classes = 0;
  std::uint64_t bytes_of_classes = 0;
  std::uint32_t classes = 0;
  for (std::size_t place = 0; place < all.pieces_of.size(); ++place) {
    pieces_of_classes += all.pieces_of[place];
    bytes_of_classes += all.bytes_of[place];
    if (all.pieces_of[place] > 0) ++classes;
  }
  CHECK(pieces_of_classes == all.pieces);
  CHECK(bytes_of_classes == all.payload_bytes);
  CHECK(classes == 2);
  CHECK(all.faults.transfers_failed == 0);
}
TEST_CASE_TEMPLATE_APPLY(totals, Carriers);

TEST_CASE_TEMPLATE_DEFINE("ordered transfers of one source, target and class are delivered in the order of submission",
                          Implementation, order) {
  Submitter<Implementation> submitter{fabric::SampleMachine{}};
  if (!submitter.under_test.carrier(0).takes_ordered()) {
    CHECK(ends_the_process([&] { submitter.under_test.carrier(0).submit(between(0, 5, 8, true)); }));
    return;
  }
  // Long and short in turn, to targets near and far, beside unordered traffic that makes ways unlike each other.
  submit_crowd(submitter, 5);
  for (std::uint32_t n = 0; n < 400; ++n) {
    Transfer transfer = between(n % 4, 8 + n % 3 * 9, n % 2 == 0 ? 30'000 : 8, true);
    transfer.traffic_class = n % 7 == 0 ? TrafficClass::bulk_data : TrafficClass::best_effort;
    submitter.submit_at(5 + n * 20'000, transfer);
  }
  submitter.run();
  std::map<std::tuple<NicId, NicId, TrafficClass>, std::uint64_t> last_ps;
  std::uint32_t compared = 0;
  for (const std::uint32_t number : submitter.deliveries) {
    const Transfer& transfer = submitter.transfers[number];
    if (!transfer.ordered) continue;
    std::uint64_t& last = last_ps[{transfer.source, transfer.target, transfer.traffic_class}];
    CHECK(submitter.fates[number].submitted_ps >= last);
    if (last != 0) ++compared;
    last = submitter.fates[number].submitted_ps;
  }
  CHECK(compared > 300);
}
TEST_CASE_TEMPLATE_APPLY(order, Carriers);

// A NIC may choose a piece once in `interval_ps`.
struct Bus final : HostBus {
  explicit Bus(std::uint64_t interval) : interval_ps(interval) {}
  void took(NicId nic, std::uint8_t memory, Bytes payload, Instant) override {
    taken[nic] += payload.count;
    taken_for[memory] += payload.count;
  }
  void sends(NicId nic, std::uint8_t memory, Bytes payload, Instant now) override {
    CHECK(now >= may_send(nic));
    sent[nic] += payload.count;
    sent_from[memory] += payload.count;
    ++pieces[nic];
    next[nic] = Instant{now.ps + interval_ps};
  }
  Instant may_send(NicId nic) const override { return next.contains(nic) ? next.at(nic) : Instant{}; }
  std::uint64_t interval_ps;
  std::map<NicId, std::uint64_t> taken;
  std::map<NicId, std::uint64_t> sent;
  std::map<NicId, std::uint64_t> pieces;
  std::map<NicId, Instant> next;
  std::map<std::uint8_t, std::uint64_t> taken_for;  // by memory
  std::map<std::uint8_t, std::uint64_t> sent_from;
};

TEST_CASE_TEMPLATE_DEFINE("a bus is told of every payload at both ends, and one that never waits changes nothing",
                          Implementation, bus_told) {
  Submitter<Implementation> alone{fabric::SampleMachine{}};
  submit_crowd(alone, 5);
  alone.run();
  Bus bus{0};
  Submitter<Implementation> told{fabric::SampleMachine{}};
  for (std::uint32_t part = 0; part < told.under_test.parts(); ++part) told.under_test.carrier(part).attach(bus);
  submit_crowd(told, 5);
  std::map<NicId, std::uint64_t> sent;
  std::map<NicId, std::uint64_t> taken;
  for (const Transfer& transfer : told.transfers) {
    sent[transfer.source] += transfer.size.count;
    taken[transfer.target] += transfer.size.count;
  }
  told.on_delivered = [&](std::uint32_t number) {
    CHECK(bus.taken[told.transfers[number].target] >= told.transfers[number].size.count);
  };
  told.run();
  CHECK(bus.sent == sent);
  CHECK(bus.taken == taken);
  for (std::size_t n = 0; n < alone.fates.size(); ++n) CHECK(told.fates[n].is(alone.fates[n]));
}
TEST_CASE_TEMPLATE_APPLY(bus_told, Carriers);

TEST_CASE_TEMPLATE_DEFINE("a bus is told which memories a transfer has named", Implementation, bus_told_memories) {
  Bus bus{0};
  Submitter<Implementation> submitter{fabric::SampleMachine{}};
  for (std::uint32_t part = 0; part < submitter.under_test.parts(); ++part) {
    submitter.under_test.carrier(part).attach(bus);
  }
  for (const std::uint8_t memory : {std::uint8_t{0}, std::uint8_t{3}}) {
    for (const std::uint64_t size : {std::uint64_t{100}, std::uint64_t{500'000}}) {
      Transfer transfer = between(1, 2, size);
      transfer.source_memory = memory;
      transfer.target_memory = static_cast<std::uint8_t>(memory + 1);
      submitter.submit_at(5, transfer);
    }
  }
  submitter.run();
  const std::uint64_t each = 500'100;
  CHECK(bus.sent_from == std::map<std::uint8_t, std::uint64_t>{{0, each}, {3, each}});
  CHECK(bus.taken_for == std::map<std::uint8_t, std::uint64_t>{{1, each}, {4, each}});
}
TEST_CASE_TEMPLATE_APPLY(bus_told_memories, Carriers);

TEST_CASE_TEMPLATE_DEFINE("a NIC sends its pieces when the bus allows it, and everything arrives", Implementation,
                          bus_obeyed) {
  Bus bus{1 * us};
  Submitter<Implementation> submitter{fabric::SampleMachine{}};
  submitter.under_test.carrier(submitter.under_test.part_of(NicId{1})).attach(bus);
  for (int n = 0; n < 5; ++n) submitter.submit_at(5, between(1, 2, 20'480));
  submitter.run();
  for (const Fate& fate : submitter.fates) CHECK(fate.ends == 1);
  CHECK(bus.sent[NicId{1}] == 5 * 20'480);
  const std::uint64_t pieces = bus.pieces[NicId{1}];
  CHECK(pieces >= 5);
  CHECK(pieces <= submitter.under_test.totals().pieces);
  CHECK(bus.next[NicId{1}] == Instant{5 + pieces * us});  // each microsecond one
}
TEST_CASE_TEMPLATE_APPLY(bus_obeyed, Carriers);

TEST_CASE_TEMPLATE_DEFINE("what a NIC sends to itself arrives like anything else, in order, and crosses no link",
                          Implementation, to_itself) {
  Submitter<Implementation> submitter{fabric::SampleMachine{}};
  const bool ordered = submitter.under_test.carrier(0).takes_ordered();
  for (const std::uint64_t bytes : {100'000, 0, 8, 5000}) submitter.submit_at(5, between(4, 4, bytes, ordered));
  submitter.run();
  for (const Fate& fate : submitter.fates) {
    CHECK(fate.deliveries == 1);
    CHECK(fate.acknowledged_ps != 0);
    CHECK(fate.switch_hops == 0);
  }
  if (ordered) CHECK(submitter.deliveries == std::vector<std::uint32_t>{0, 1, 2, 3});
  const NetworkTotals totals = submitter.under_test.totals();
  CHECK(totals.piece_hops == 0);
  CHECK(totals.payload_bytes == 105'008);
}
TEST_CASE_TEMPLATE_APPLY(to_itself, Carriers);

// --- what a network as a whole promises ---------------------------------------------------------------------------

TEST_CASE_TEMPLATE_DEFINE("after a restart nothing depends on what has been before", Implementation, restart) {
  Submitter<Implementation> used{fabric::SampleMachine{.latency_spread_ps = 40'000}};
  Submitter<Implementation> unused{fabric::SampleMachine{.latency_spread_ps = 40'000}};
  submit_crowd(used, 5);
  used.run();
  used.forget();
  for (auto* submitter : {&used, &unused}) {
    submitter->under_test.network().restart(Instant{1 * s});
    CHECK(submitter->under_test.at_rest());
    CHECK(submitter->under_test.totals().pieces == 0);
    submit_crowd(*submitter, 1 * s + 5);
    submitter->run();
  }
  for (std::size_t n = 0; n < used.fates.size(); ++n) CHECK(used.fates[n].is(unused.fates[n]));
  CHECK(used.under_test.totals().piece_hops == unused.under_test.totals().piece_hops);
  CHECK(used.under_test.totals().bytes_of == unused.under_test.totals().bytes_of);
}
TEST_CASE_TEMPLATE_APPLY(restart, Networks);

TEST_CASE_TEMPLATE_DEFINE("a network with transfers under way is not restarted", Implementation, no_restart) {
  Submitter<Implementation> submitter{fabric::SampleMachine{}};
  submitter.under_test.carrier(0).submit(between(0, 5, 8));
  CHECK(ends_the_process([&] { submitter.under_test.network().restart(Instant{1 * s}); }));
}
TEST_CASE_TEMPLATE_APPLY(no_restart, Networks);

TEST_CASE_TEMPLATE_DEFINE("without faults nothing is lost, late, cut off or drained", Implementation, no_faults) {
  Submitter<Implementation> submitter{fabric::SampleMachine{}};
  submit_crowd(submitter, 5, 50);
  submitter.run();
  const Network& network = submitter.under_test.network();
  for (const auto& [nic, account] : network.nic_accounts(Instant{1 * s})) {
    CHECK(account.timeouts.ordered + account.timeouts.unordered == 0);
    CHECK(account.flows_given_up + account.ordered_given_up + account.unordered_given_up == 0);
  }
  CHECK(network.link_health(Instant{1 * s}).empty());
  CHECK(!network.cut_off({NicId{0}, NicId{1}, NicId{31}}));
  CHECK(!network.drained({NicId{0}, NicId{1}, NicId{31}}));
}
TEST_CASE_TEMPLATE_APPLY(no_faults, Networks);

TEST_CASE_TEMPLATE_DEFINE("what cannot be reached fails once, is never acknowledged, and others go on", Implementation,
                          failures) {
  Submitter<Implementation> submitter{machine_with_fault()};
  submitter.under_test.begin_fault();
  for (const bool ordered : {true, false}) {
    submitter.submit_at(2 * s, between(0, 1, 5000, ordered));
    submitter.submit_at(2 * s + 10, between(1, 9, 5000, ordered));
    submitter.submit_at(2 * s + 20, between(0, 9, 5000, ordered));
  }
  submitter.run();
  std::uint64_t failed = 0;
  for (std::size_t n = 0; n < submitter.fates.size(); ++n) {
    const Transfer& transfer = submitter.transfers[n];
    const bool reached = transfer.source != NicId{1} && transfer.target != NicId{1};
    CHECK(submitter.fates[n].ends == 1);
    CHECK((submitter.fates[n].acknowledged_ps != 0) == reached);
    CHECK((submitter.fates[n].failed_ps != 0) == !reached);
    CHECK(submitter.fates[n].deliveries == (reached ? 1 : 0));
    if (!reached) ++failed;
  }
  const Network& network = submitter.under_test.network();
  CHECK(network.at_rest());
  CHECK(network.totals().faults.transfers_failed == failed);
  // Of both NICs one ordered and one unordered transfer fail, sent once and once again.
  std::uint64_t timeouts = 0;
  std::uint64_t sent_again = 0;
  std::uint64_t with_trouble = 0;
  for (const auto& [nic, account] : network.nic_accounts(never)) {
    const std::uint64_t of_nic = account.timeouts.ordered + account.timeouts.unordered;
    timeouts += of_nic;
    sent_again += account.sent_again;
    for (const std::uint64_t waited_ps : account.without_room_ps) CHECK(waited_ps < 1'000'000'000'000'000);
    if (of_nic == 0) continue;
    ++with_trouble;
    CHECK((nic == NicId{0} || nic == NicId{1}));
    CHECK(account.timeouts.ordered >= 2);
    CHECK(account.timeouts.unordered >= 2);
    CHECK(account.sent_again >= 2);
    CHECK(account.flows_given_up == 1);
    CHECK(account.ordered_given_up > 0);
    CHECK(account.ordered_given_up == account.unordered_given_up);
  }
  CHECK(with_trouble == 2);
  CHECK(timeouts == network.totals().faults.network_timeouts);
  CHECK(timeouts >= failed);
  CHECK(sent_again == network.totals().faults.pieces_sent_again);
}
TEST_CASE_TEMPLATE_APPLY(failures, Networks);

TEST_CASE_TEMPLATE_DEFINE("when faults have ended everything arrives", Implementation, end_of_faults) {
  Submitter<Implementation> submitter{machine_with_fault()};
  submitter.under_test.begin_fault();
  submitter.under_test.network().end_faults();
  submitter.submit_at(2 * s, between(0, 1, 5000));
  submitter.run();
  CHECK(submitter.fates[0].acknowledged_ps != 0);
}
TEST_CASE_TEMPLATE_APPLY(end_of_faults, Networks);

TEST_CASE_TEMPLATE_DEFINE("an observer hears of each piece on each link, and changes nothing", Implementation,
                          observed) {
  struct Observer final : NetworkObserver {
    void carried(const CarriedPiece& piece) override {
      CHECK(piece.start_ps < piece.end_ps);
      if (!piece.acknowledgement) ++data;
      if (!piece.acknowledgement && piece.to_nic) bytes += piece.bytes;
    }
    std::uint64_t data = 0;
    std::uint64_t bytes = 0;
  };
  Submitter<Implementation> alone{fabric::SampleMachine{}};
  submit_crowd(alone, 5);
  alone.run();

  Observer observer;
  Submitter<Implementation> watched{fabric::SampleMachine{}};
  watched.under_test.network().observe(&observer);
  submit_crowd(watched, 5);
  watched.run();
  const NetworkTotals totals = watched.under_test.totals();
  CHECK(observer.data == totals.piece_hops);
  const Spec& spec = watched.under_test.machine.spec;
  std::uint64_t over_links = 0;
  for (const Transfer& transfer : watched.transfers) {
    if (transfer.source == transfer.target) continue;
    const std::uint64_t payload_max = spec.number(fields::fabric_packet_payload_bytes);
    const std::uint64_t pieces = std::max<std::uint64_t>(1, (transfer.size.count + payload_max - 1) / payload_max);
    over_links += transfer.size.count + pieces * spec.number(fields::fabric_packet_header_bytes);
  }
  CHECK(observer.bytes == over_links);
  for (std::size_t n = 0; n < alone.fates.size(); ++n) CHECK(watched.fates[n].is(alone.fates[n]));

  watched.under_test.network().observe(nullptr);
  watched.submit_at(1 * s, between(0, 5, 8));
  watched.run();
  CHECK(observer.data == totals.piece_hops);
}
TEST_CASE_TEMPLATE_APPLY(observed, WithLinks);

}  // namespace
}  // namespace dryfly
