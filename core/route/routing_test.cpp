#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <set>
#include <vector>

#include "core/network/packet/link_loads.hpp"
#include "core/route/algorithms.hpp"
#include "testing/rig.hpp"

namespace dryfly::fabric {
namespace {

SampleMachine doubled() {
  SampleMachine machine;
  machine.groups = 5;
  machine.switches = 3;
  machine.nodes = 3;
  machine.local_links = 2;
  machine.global_links = 2;
  return machine;
}

// Both ends of the range of `parallel`: with two links each is picked once.
constexpr std::uint32_t parallels[] = {0, 0xffffffffU};

std::vector<Way> minimal_ways(const Dragonfly& dragonfly, SwitchId source, SwitchId target) {
  std::vector<Way> ways;
  const GroupId from = dragonfly.group_of(source);
  const GroupId to = dragonfly.group_of(target);
  for (const std::uint32_t parallel : parallels) {
    if (from == to) ways.push_back({nullptr, nullptr, target, parallel});
    for (const GlobalEnd& end : dragonfly.global_ends(from, to)) ways.push_back({&end, nullptr, target, parallel});
  }
  return ways;
}

std::vector<Way> detours(const Dragonfly& dragonfly, SwitchId source, SwitchId target) {
  std::vector<Way> ways;
  const GroupId from = dragonfly.group_of(source);
  const GroupId to = dragonfly.group_of(target);
  for (const std::uint32_t parallel : parallels) {
    const std::uint32_t first = dragonfly.first_switch(from).value;
    for (std::uint32_t via = first; from == to && via < first + dragonfly.switches_in(from); ++via) {
      if (SwitchId{via} != source && SwitchId{via} != target) ways.push_back({nullptr, nullptr, {via}, parallel});
    }
    for (std::uint32_t via = 0; from != to && via < dragonfly.group_count(); ++via) {
      for (const GlobalEnd& there : dragonfly.global_ends(from, {via})) {
        for (const GlobalEnd& onward : dragonfly.global_ends({via}, to)) {
          ways.push_back({&there, &onward, target, parallel});
        }
      }
    }
  }
  return ways;
}

void for_each_pair(const Dragonfly& dragonfly, const std::function<void(SwitchId, NicId)>& visit) {
  for (std::uint32_t source = 0; source < dragonfly.switch_count(); ++source) {
    for (std::uint32_t nic = 0; nic < dragonfly.nic_count(); ++nic) {
      if (dragonfly.switch_of({nic}) != SwitchId{source}) visit({source}, {nic});
    }
  }
}

Path path_to(const Dragonfly& dragonfly, SwitchId source, NicId target, const Way& way) {
  return path_along(dragonfly, source, dragonfly.switch_of(target), dragonfly.port_of(target), way);
}

TEST_CASE("every way ends at its target NIC: minimal within 3 links, detours within 5, no switch twice") {
  const Spec spec = doubled().spec();
  const Dragonfly dragonfly{spec};
  for_each_pair(dragonfly, [&](SwitchId source, NicId target) {
    for (const bool minimal : {true, false}) {
      const SwitchId last = dragonfly.switch_of(target);
      const auto ways = minimal ? minimal_ways(dragonfly, source, last) : detours(dragonfly, source, last);
      REQUIRE(!ways.empty());
      for (const Way& way : ways) {
        const Path path = path_to(dragonfly, source, target, way);
        REQUIRE(path.switch_hops == hops_along(source, last, way));
        REQUIRE(path.switch_hops <= (minimal ? 3 : 5));
        std::set<std::uint32_t> visited{source.value};
        SwitchId at = source;
        for (std::uint32_t hop = 0; hop < path.switch_hops; ++hop) {
          const Peer& peer = dragonfly.peer(at, path.ports[hop]);
          REQUIRE((peer.kind == Peer::Kind::local_switch || peer.kind == Peer::Kind::global_switch));
          REQUIRE(visited.insert(peer.id).second);
          at = {peer.id};
        }
        const Peer& end = dragonfly.peer(at, path.ports[path.switch_hops]);
        REQUIRE(end.kind == Peer::Kind::nic);
        REQUIRE(end.id == target.value);
      }
    }
  });
}

// A node of the graph is a buffer: (port that drives the link, channel). A packet that holds one waits for the next
// of its path; the ejection link waits for nothing. All ways of both algorithms are walked.
TEST_CASE("the channel-dependency graph of all ways is acyclic") {
  const Spec spec = doubled().spec();
  const Dragonfly dragonfly{spec};
  using Buffer = std::pair<std::uint32_t, std::uint32_t>;
  std::map<Buffer, std::set<Buffer>> waits_for;
  for_each_pair(dragonfly, [&](SwitchId source, NicId target) {
    const SwitchId last = dragonfly.switch_of(target);
    auto ways = minimal_ways(dragonfly, source, last);
    for (const Way& way : detours(dragonfly, source, last)) ways.push_back(way);
    for (const Way& way : ways) {
      const Path path = path_to(dragonfly, source, target, way);
      SwitchId at = source;
      Buffer held{dragonfly.port_count(), 0};  // the link from the source NIC; one node stands for all
      for (std::uint32_t hop = 0; hop < path.switch_hops; ++hop) {
        REQUIRE(channel_out(hop) < channel_count);
        REQUIRE(channel_in(hop + 1) == channel_out(hop));
        const Buffer wanted{dragonfly.first_port(at) + path.ports[hop], channel_out(hop)};
        waits_for[held].insert(wanted);
        waits_for[wanted];
        held = wanted;
        at = {dragonfly.peer(at, path.ports[hop]).id};
      }
    }
  });
  // Every link between switches is used by some way, on some channel.
  std::set<std::uint32_t> used;
  for (const auto& [buffer, next] : waits_for) used.insert(buffer.first);
  CHECK(used.size() == 1 + 2 * (dragonfly.local_link_count() + dragonfly.global_link_count()));

  // Kahn: take away what nothing waits for, until nothing is left.
  std::map<Buffer, std::size_t> incoming;
  for (const auto& [buffer, next] : waits_for) {
    for (const Buffer& wanted : next) ++incoming[wanted];
  }
  std::vector<Buffer> removable;
  for (const auto& [buffer, next] : waits_for) {
    if (incoming[buffer] == 0) removable.push_back(buffer);
  }
  std::size_t removed = 0;
  while (!removable.empty()) {
    const Buffer buffer = removable.back();
    removable.pop_back();
    ++removed;
    for (const Buffer& wanted : waits_for[buffer]) {
      if (--incoming[wanted] == 0) removable.push_back(wanted);
    }
  }
  CHECK(removed == waits_for.size());
}

struct Bench {
  explicit Bench(const SampleMachine& machine)
      : spec(machine.spec()),
        fabric(FabricSpec::read(spec)),
        dragonfly(spec),
        links(engine, dragonfly, fabric, spec),
        routing(make_routing(spec, dragonfly)) {}
  Path route(std::uint32_t source_nic, std::uint32_t target_nic, std::uint32_t sequence) const {
    PacketDraws draws{static_cast<std::uint32_t>(mix(sequence) >> 32), 0};
    const RouteQuery query{dragonfly.switch_of({source_nic}), dragonfly.switch_of({target_nic}),
                           dragonfly.port_of({target_nic})};
    return path_along(dragonfly, query.source, query.target, query.target_port,
                      routing->choose(query, draws, LinkLoads{links}));
  }
  Engine engine;
  Spec spec;
  FabricSpec fabric;
  Dragonfly dragonfly;
  Links links;
  std::unique_ptr<Routing> routing;
};

TEST_CASE("both algorithms take only ways that exist, and draw every minimal one") {
  for (const char* algorithm : {"minimal", "adaptive"}) {
    SampleMachine machine = doubled();
    machine.routing = algorithm;
    const Bench bench{machine};
    for_each_pair(bench.dragonfly, [&](SwitchId source, NicId target) {
      std::set<std::array<std::uint8_t, most_switches>> minimal;
      std::set<std::array<std::uint8_t, most_switches>> drawn;
      std::uint32_t fewest_hops = most_switches;
      for (const Way& way : minimal_ways(bench.dragonfly, source, bench.dragonfly.switch_of(target))) {
        minimal.insert(path_to(bench.dragonfly, source, target, way).ports);
        fewest_hops = std::min(fewest_hops, hops_along(source, bench.dragonfly.switch_of(target), way));
      }
      // One NIC on each switch: it has the number of its switch.
      std::uint32_t shortest = most_switches;
      for (std::uint32_t sequence = 0; sequence < 64; ++sequence) {
        const Path path = bench.route(source.value, target.value, sequence);
        REQUIRE(minimal.count(path.ports) == 1);
        drawn.insert(path.ports);
        shortest = std::min<std::uint32_t>(shortest, path.switch_hops);
      }
      REQUIRE(shortest == fewest_hops);
      // `parallel` picks the local links of both ends alike, so those walked with its two extremes are all.
      if (std::string(algorithm) == "minimal") REQUIRE(drawn == minimal);
    });
  }
}

TEST_CASE("adaptive routing leaves a loaded link for the other minimal one, then for a detour beyond the bias") {
  SampleMachine machine;
  machine.groups = 4;
  machine.switches = 1;
  machine.nodes = 1;
  machine.global_links = 2;
  machine.bias_shift = 1;
  machine.bias_bytes = 10'000;  // 400,000 ps
  Bench bench{machine};
  const auto ends = bench.dragonfly.global_ends({0}, {1});
  const auto queue = [&](const GlobalEnd& end, std::uint64_t ps) {
    bench.links[bench.dragonfly.first_port(end.near) + end.near_port].busy_until_ps = ps;
  };
  const auto shares = [&] {  // of 1,000 packets: by the first link, by the second, by a detour
    std::array<int, 3> count{};
    for (std::uint32_t sequence = 0; sequence < 1000; ++sequence) {
      const Path path = bench.route(0, 1, sequence);
      ++count[path.decide_at != decided ? 2 : path.ports[0] == ends[0].near_port ? 0 : 1];
    }
    return count;
  };
  // No load: the way drawn first, so half and half within five standard deviations (16 each).
  auto none_loaded = shares();
  CHECK(none_loaded[2] == 0);
  CHECK(std::abs(none_loaded[0] - 500) < 80);
  // Both draws hit the loaded link in a quarter of the cases, otherwise the idle one wins. 300 ns are within the bias.
  queue(ends[0], 300'000);
  auto one_loaded = shares();
  CHECK(one_loaded[2] == 0);
  CHECK(std::abs(one_loaded[0] - 250) < 70);
  // 500 ns on both are over (0 << 1) + 400 ns. A detour draw hits one of the 2 useful groups of 4 with 1/2: one of
  // two does with 3/4.
  queue(ends[0], 500'000);
  queue(ends[1], 500'000);
  auto both_loaded = shares();
  CHECK(std::abs(both_loaded[2] - 750) < 70);
  // With 60 ns on every other link the threshold is (60 << 1) + 400 = 520 ns: minimal again.
  for (std::uint32_t group : {2U, 3U}) {
    for (const GlobalEnd& end : bench.dragonfly.global_ends({0}, {group})) queue(end, 60'000);
  }
  CHECK(shares()[2] == 0);
}

TEST_CASE("Valiant routing takes a detour always; the third group's switch goes on by the less loaded of its links") {
  SampleMachine machine;
  machine.groups = 3;
  machine.switches = 1;
  machine.nodes = 1;
  machine.routing = "valiant";
  const Bench valiant{machine};
  for (std::uint32_t sequence = 0; sequence < 100; ++sequence) {
    const Path path = valiant.route(0, 1, sequence);
    REQUIRE(path.decide_at == 1);
    REQUIRE(valiant.dragonfly.peer({0}, path.ports[0]).id == 2);
  }
  machine.routing = "adaptive";
  Bench adaptive{machine};
  const auto ends = adaptive.dragonfly.global_ends({2}, {1});
  adaptive.links[adaptive.dragonfly.first_port({2}) + ends[0].near_port].busy_until_ps = 200'000;
  int loaded = 0;
  for (std::uint32_t sequence = 0; sequence < 1000; ++sequence) {
    PacketDraws draws{sequence, 1};
    const RouteQuery query{{2}, {1}, adaptive.dragonfly.port_of({1})};
    const Way way = adaptive.routing->go_on(query, draws, LinkLoads{adaptive.links});
    if (way.first_global->near_port == ends[0].near_port) ++loaded;
  }
  // Only where both draws hit it.
  CHECK(std::abs(loaded - 250) < 70);
}

TEST_CASE("the load of another switch is known one staleness late") {
  SampleMachine machine;
  machine.staleness_ps = 500'000;
  Rig rig{machine};
  const FabricSpec fabric = FabricSpec::read(rig.spec);
  Links links{rig.engine, rig.dragonfly, fabric, rig.spec};
  const GlobalEnd& end = rig.dragonfly.global_ends({0}, {1})[0];
  const std::uint32_t port = rig.dragonfly.first_port(end.near) + end.near_port;
  std::vector<std::uint64_t> own_ps;
  std::vector<std::uint64_t> told_ps;
  // An event of the workload moves the clock; what it submits is nothing to these links.
  for (const std::uint64_t at_ps : {1'000'000ULL, 1'400'000ULL, 1'600'000ULL}) {
    rig.submit_at(at_ps, transfer_between(0, 1, 0));
    rig.engine.run(Instant{at_ps + 1});
    if (at_ps == 1'000'000) {
      links[port].busy_until_ps = at_ps + 2'000'000;
      links.note_load(links[port], port);
    }
    own_ps.push_back(links.queued_ps(links[port]));
    told_ps.push_back(links.told_ps(port));
  }
  CHECK(own_ps == std::vector<std::uint64_t>{2'000'000, 1'600'000, 1'400'000});
  // At 1.6 us what was true at 1.1 us.
  CHECK(told_ps == std::vector<std::uint64_t>{0, 0, 1'900'000});
}

TEST_CASE("an unknown algorithm is refused with those there are") {
  SampleMachine machine;
  machine.routing = "shortest";
  CHECK_THROWS_WITH_AS(Rig{machine}, "fabric.routing.algorithm = `shortest`: accepted are minimal, valiant, adaptive",
                       SpecError);
}

}  // namespace
}  // namespace dryfly::fabric
