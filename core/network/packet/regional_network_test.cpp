#include "core/network/packet/regional_network.hpp"

#include <doctest/doctest.h>

#include "core/route/algorithms.hpp"
#include "testing/rig.hpp"

namespace dryfly::fabric {
namespace {

struct Order {
  std::uint64_t at_ps = 0;
  Transfer transfer;
};

// What the workload of one group needs: who submits, and where the outcome is noted. No two groups write one outcome
// field: deliveries are the target's, acknowledgements the source's.
struct Side : TransferSink, Handler {
  Side(Engine& its_engine, Carrier& its_network, const std::vector<Order>& all, std::vector<Rig::Outcome>& noted)
      : engine(its_engine), network(its_network), orders(all), outcomes(noted) {
    engine.attach(ComponentClass::workload, *this);
    network.connect(*this);
  }
  void handle(Event event) override { network.submit(orders[static_cast<std::uint32_t>(event.key)].transfer); }
  void delivered(std::uint32_t handle, std::uint32_t switch_hops) override {
    outcomes[handle].delivered_ps = engine.now().ps;
    outcomes[handle].switch_hops = switch_hops;
  }
  void acknowledged(std::uint32_t handle) override { outcomes[handle].acknowledged_ps = engine.now().ps; }

  Engine& engine;
  Carrier& network;
  const std::vector<Order>& orders;
  std::vector<Rig::Outcome>& outcomes;
};

// Enough to fill buffers, in two classes; every fourth transfer goes to NIC 0, which makes that a hot end-point.
std::vector<Order> crowd(const Dragonfly& dragonfly, std::uint32_t count, std::uint64_t seed) {
  const RandomStream random{seed, 0, Purpose::test};
  std::uint64_t draws = 0;
  std::vector<Order> orders;
  for (std::uint32_t handle = 0; handle < count; ++handle) {
    const std::uint32_t source = 1 + random.below(draws++, dragonfly.nic_count() - 1);
    const std::uint32_t other = random.below(draws++, dragonfly.nic_count() - 1);
    const std::uint32_t target = handle % 4 == 0 ? 0 : other + (other >= source ? 1 : 0);
    Transfer transfer = transfer_between(source, target, random.below(draws++, 20'000), false);
    transfer.handle = handle;
    transfer.traffic_class = handle % 3 == 0 ? TrafficClass::bulk_data : TrafficClass::best_effort;
    orders.push_back({random.below(draws++, 10'000'000), transfer});
  }
  return orders;
}

std::vector<Rig::Outcome> in_one_part(const SampleMachine& machine, const std::vector<Order>& orders) {
  Rig rig{machine};
  for (const Order& order : orders) rig.submit_at(order.at_ps, order.transfer);
  rig.engine.run(never);
  REQUIRE(rig.network.at_rest());
  return rig.outcomes;
}

std::vector<Rig::Outcome> in_regions(const SampleMachine& machine, const std::vector<Order>& orders,
                                     std::uint32_t threads) {
  const Spec spec = machine.spec();
  const Dragonfly dragonfly{spec};
  RegionalNetwork network{dragonfly, spec};
  std::vector<Rig::Outcome> outcomes(orders.size());
  std::vector<std::unique_ptr<Side>> sides;
  for (std::uint32_t group = 0; group < dragonfly.group_count(); ++group) {
    sides.push_back(std::make_unique<Side>(network.engine({group}), network.network({group}), orders, outcomes));
  }
  for (const Order& order : orders) {
    const GroupId group = dragonfly.group_of(dragonfly.switch_of(order.transfer.source));
    network.engine(group).schedule(
        Instant{order.at_ps},
        (static_cast<std::uint64_t>(ComponentClass::workload) << component_class_shift) | order.transfer.handle);
  }
  network.run(threads);
  REQUIRE(network.at_rest());
  return outcomes;
}

bool same(const std::vector<Rig::Outcome>& first, const std::vector<Rig::Outcome>& second) {
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i].delivered_ps != second[i].delivered_ps || first[i].acknowledged_ps != second[i].acknowledged_ps ||
        first[i].switch_hops != second[i].switch_hops || first[i].acknowledged_ps == 0) {
      MESSAGE("transfer " << i << " delivered at " << first[i].delivered_ps << " and " << second[i].delivered_ps);
      return false;
    }
  }
  return first.size() == second.size();
}

TEST_CASE("a network in regions gives the result of one in one part, to the picosecond, by any number of threads") {
  for (const Algorithm& algorithm : algorithms) {
    CAPTURE(algorithm.name);
    SampleMachine machine;
    machine.groups = 5;
    machine.nodes = 16;
    machine.latency_spread_ps = 50'000;
    machine.input_buffer_bytes = 16'384;
    machine.routing = algorithm.name;
    const std::vector<Order> orders = crowd(Dragonfly{machine.spec()}, 4'000, 3);
    const auto reference = in_one_part(machine, orders);
    for (const std::uint32_t threads : {1, 2, 3}) {
      CAPTURE(threads);
      CHECK(same(reference, in_regions(machine, orders, threads)));
    }
  }
}

TEST_CASE("regions agree with one part where global links are short and no buffer has room for a second packet") {
  SampleMachine machine;
  machine.groups = 3;
  machine.global_flight_ps = 10'000;
  machine.input_buffer_bytes = 2 * 2'112;
  const std::vector<Order> orders = crowd(Dragonfly{machine.spec()}, 1'000, 4);
  CHECK(same(in_one_part(machine, orders), in_regions(machine, orders, 2)));
}

TEST_CASE("a network in regions refuses faults") {
  SampleMachine machine;
  const Dragonfly dragonfly{machine.spec()};
  CHECK_NOTHROW(RegionalNetwork(dragonfly, machine.spec()));
  machine.more += "faults.count 1\n";
  CHECK_THROWS_AS(RegionalNetwork(dragonfly, machine.spec()), SpecError);
}

}  // namespace
}  // namespace dryfly::fabric
