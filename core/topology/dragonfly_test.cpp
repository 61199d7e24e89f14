#include "core/topology/dragonfly.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "core/topology/address.hpp"

namespace dryfly {
namespace {

std::string kind_text(int k, const std::string& name, int groups, int switches, int nodes, int nics,
                      const std::string& attach, int local_links = 1) {
  const std::string prefix = "topology.kind." + std::to_string(k) + ".";
  return prefix + "name " + name + "\n" + prefix + "groups " + std::to_string(groups) + "\n" + prefix + "switches " +
         std::to_string(switches) + "\n" + prefix + "nodes " + std::to_string(nodes) + "\n" + prefix +
         "nics_per_node " + std::to_string(nics) + "\n" + prefix + "attach " + attach + "\n" + prefix + "local_links " +
         std::to_string(local_links) + "\n";
}

// docs/model/topology.md#aurora: 166 compute, 8 storage and 1 service groups of 32 switches; 2, 2, 2, 24 links by
// kinds, storage to service 8; 64 nodes of 8 NICs in a compute group. Storage nodes are not modelled.
std::string aurora_text() {
  return "topology.kinds 3\ntopology.ports_per_switch 64\n" + kind_text(0, "compute", 166, 32, 64, 8, "same_switch") +
         kind_text(1, "storage", 8, 32, 0, 0, "same_switch") + kind_text(2, "service", 1, 32, 0, 0, "same_switch") +
         "topology.global.0.0 2\ntopology.global.0.1 2\ntopology.global.0.2 2\ntopology.global.1.1 24\n"
         "topology.global.1.2 8\ntopology.global.2.2 0\n";
}

// A little of everything: two kinds, switches in odd numbers, parallel local links, NICs spread and together.
std::string mixed_text() {
  return "topology.kinds 2\ntopology.ports_per_switch 32\n" + kind_text(0, "compute", 4, 6, 9, 3, "spread", 2) +
         kind_text(1, "storage", 2, 3, 5, 2, "same_switch") +
         "topology.global.0.0 3\ntopology.global.0.1 2\ntopology.global.1.1 1\n";
}

// Shortest way in switch-to-switch links by breadth-first search over the ports, the definition of distance that
// owes nothing to the arithmetic of the class.
std::vector<std::uint32_t> distances(const Dragonfly& dragonfly, SwitchId start) {
  std::vector<std::uint32_t> distance(dragonfly.switch_count(), 0xffffffffU);
  std::vector<SwitchId> front{start};
  distance[start.value] = 0;
  for (std::size_t i = 0; i < front.size(); ++i) {
    for (std::uint32_t port = 0; port < dragonfly.ports_of(front[i]); ++port) {
      const Peer& peer = dragonfly.peer(front[i], port);
      if (peer.kind != Peer::Kind::local_switch && peer.kind != Peer::Kind::global_switch) continue;
      if (distance[peer.id] != 0xffffffffU) continue;
      distance[peer.id] = distance[front[i].value] + 1;
      front.push_back({peer.id});
    }
  }
  return distance;
}

void check_wiring(const Dragonfly& dragonfly) {
  std::uint64_t local_ends = 0;
  std::uint64_t global_ends = 0;
  std::vector<std::uint32_t> nic_seen(dragonfly.nic_count(), 0);
  for (std::uint32_t at = 0; at < dragonfly.switch_count(); ++at) {
    for (std::uint32_t port = 0; port < dragonfly.ports_of({at}); ++port) {
      const Peer& peer = dragonfly.peer({at}, port);
      REQUIRE(peer.kind != Peer::Kind::nothing);
      if (peer.kind == Peer::Kind::nic) {
        REQUIRE(dragonfly.switch_of({peer.id}) == SwitchId{at});
        REQUIRE(dragonfly.port_of({peer.id}) == port);
        ++nic_seen[peer.id];
        continue;
      }
      const Peer& back = dragonfly.peer({peer.id}, peer.port);
      REQUIRE(back.kind == peer.kind);
      REQUIRE(back.id == at);
      REQUIRE(back.port == port);
      const bool same_group = dragonfly.group_of({at}) == dragonfly.group_of({peer.id});
      REQUIRE(same_group == (peer.kind == Peer::Kind::local_switch));
      ++(same_group ? local_ends : global_ends);
    }
  }
  CHECK(local_ends == 2 * dragonfly.local_link_count());
  CHECK(global_ends == 2 * dragonfly.global_link_count());
  CHECK(nic_seen == std::vector<std::uint32_t>(dragonfly.nic_count(), 1));
}

void check_nodes(const Dragonfly& dragonfly) {
  std::uint32_t expected_nic = 0;
  for (std::uint32_t node = 0; node < dragonfly.node_count(); ++node) {
    for (std::uint32_t index = 0; index < dragonfly.nics_per_node({node}); ++index, ++expected_nic) {
      REQUIRE(dragonfly.nic_of({node}, index) == NicId{expected_nic});
      REQUIRE(dragonfly.node_of({expected_nic}) == NodeId{node});
    }
  }
  CHECK(expected_nic == dragonfly.nic_count());
}

TEST_CASE("Aurora has the published numbers of everything, and builds quickly") {
  const auto start = std::chrono::steady_clock::now();
  const Dragonfly aurora{Spec::parse(aurora_text())};
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  CHECK(took.count() < 5.0);
  CHECK(aurora.group_count() == 175);
  CHECK(aurora.switch_count() == 5600);
  CHECK(aurora.node_count() == 10624);
  CHECK(aurora.nic_count() == 84992);
  CHECK(aurora.local_link_count() == 175 * 496);
  // 166 x 165 / 2 x 2 between compute groups; 166 x 9 x 2 to the others; 8 x 7 / 2 x 24; 8 x 8.
  CHECK(aurora.global_link_count() == 27390 + 2988 + 672 + 64);
  std::uint64_t compute_ends = 0;
  for (std::uint32_t from = 0; from < 166; ++from) {
    for (std::uint32_t to = 0; to < 166; ++to) compute_ends += aurora.global_ends({from}, {to}).size();
  }
  CHECK(compute_ends / 2 == 27390);
  check_wiring(aurora);
  check_nodes(aurora);
  // 2 nodes to a switch, so neighbours in pairs.
  CHECK(aurora.switch_of(aurora.nic_of({0}, 0)) == aurora.switch_of(aurora.nic_of({1}, 7)));
  CHECK(aurora.switch_of(aurora.nic_of({1}, 0)) != aurora.switch_of(aurora.nic_of({2}, 0)));
  // (165 + 9) x 2 = 348 global links on 32 switches: 10 or 11 each, with 31 local and 16 NICs.
  for (std::uint32_t at = 0; at < 32; ++at) {
    const std::uint32_t ports = aurora.ports_of({at});
    CHECK((ports == 31 + 16 + 10 || ports == 31 + 16 + 11));
  }
}

TEST_CASE("every port leads to one port and back, in a machine of several kinds") {
  const Dragonfly mixed{Spec::parse(mixed_text())};
  check_wiring(mixed);
  check_nodes(mixed);
  // 4 x 15 pairs x 2 + 2 x 3 pairs; 6 pairs x 3 + 8 pairs x 2 + 1.
  CHECK(mixed.local_link_count() == 126);
  CHECK(mixed.global_link_count() == 35);
  CHECK(mixed.nic_count() == 4 * 9 * 3 + 2 * 5 * 2);
}

TEST_CASE("every switch is within three links of every other") {
  for (const std::string& text : {mixed_text(), aurora_text()}) {
    const Dragonfly dragonfly{Spec::parse(text)};
    const std::uint32_t step = dragonfly.switch_count() / 7 + 1;
    for (std::uint32_t start = 0; start < dragonfly.switch_count(); start += step) {
      // Aurora's one service group and its storage groups are joined as well, so this holds for all.
      for (std::uint32_t distance : distances(dragonfly, {start})) REQUIRE(distance <= 3);
    }
  }
}

TEST_CASE("the links of a group differ by at most one between its switches") {
  const Dragonfly mixed{Spec::parse(mixed_text())};
  for (std::uint32_t group = 0; group < mixed.group_count(); ++group) {
    std::vector<int> ends(mixed.switches_in({group}), 0);
    for (std::uint32_t to = 0; to < mixed.group_count(); ++to) {
      for (const GlobalEnd& end : mixed.global_ends({group}, {to})) {
        CHECK(mixed.group_of(end.near) == GroupId{group});
        CHECK(mixed.group_of(end.far) == GroupId{to});
        ++ends[end.near.value - mixed.first_switch({group}).value];
      }
    }
    CHECK(*std::max_element(ends.begin(), ends.end()) - *std::min_element(ends.begin(), ends.end()) <= 1);
  }
}

// docs/model/topology.md#frontier: 4 NICs on 4 different switches, 16 NICs to a switch.
TEST_CASE("a spread node has its NICs on consecutive switches, shared with its chassis") {
  const Dragonfly dragonfly{Spec::parse("topology.kinds 1\ntopology.ports_per_switch 64\n" +
                                        kind_text(0, "compute", 2, 32, 128, 4, "spread") + "topology.global.0.0 4\n")};
  for (std::uint32_t node = 0; node < 256; ++node) {
    const std::uint32_t first = dragonfly.switch_of(dragonfly.nic_of({node}, 0)).value;
    CHECK(first % 4 == 0);
    CHECK(first == node / 16 * 4);
    for (std::uint32_t index = 1; index < 4; ++index) {
      CHECK(dragonfly.switch_of(dragonfly.nic_of({node}, index)).value == first + index);
    }
  }
}

TEST_CASE("wiring that does not fit is refused with the field and the number") {
  const auto message_of = [](const std::string& text) -> std::string {
    try {
      const Dragonfly dragonfly{Spec::parse(text)};
    } catch (const SpecError& error) {
      return error.what();
    }
    return "";
  };
  const std::string global = "topology.global.0.0 2\n";
  const std::string kind = kind_text(0, "compute", 4, 8, 16, 4, "same_switch");
  const std::string head = "topology.kinds 1\ntopology.ports_per_switch ";
  // 7 local, 8 NICs, 6 global links on 8 switches: 16 ports at most.
  CHECK(message_of(head + "16\n" + kind + global).empty());
  CHECK(message_of(head + "15\n" + kind + global).find("topology.ports_per_switch = 15") == 0);
  CHECK(message_of(head + "65\n" + kind + global).find("65: accepted are 1 to 64") != std::string::npos);
  CHECK(message_of(head + "16\n" + kind + "topology.global.0.0 0\n").find("cannot reach") != std::string::npos);
  CHECK(message_of(head + "16\n" + kind_text(0, "compute", 4, 8, 16, 4, "apart") + global).find("apart") !=
        std::string::npos);
  CHECK(message_of(head + "64\n" + kind_text(0, "compute", 4, 8, 999, 4, "spread") + global).find("nodes = 999") !=
        std::string::npos);
}

TEST_CASE("the address of a NIC says where it is plugged in, and no other has it") {
  for (const std::string& text : {mixed_text(), aurora_text()}) {
    const Dragonfly dragonfly{Spec::parse(text)};
    std::set<std::uint32_t> addresses;
    for (NicId nic{0}; nic.value < dragonfly.nic_count(); ++nic.value) {
      const std::uint32_t address = fabric_address(dragonfly, nic).value();
      CHECK(addresses.insert(address).second);
      const SwitchId at{dragonfly.first_switch(GroupId{address >> 11}).value + (address >> 6 & 31)};
      const Peer& peer = dragonfly.peer(at, address & 63);
      CHECK(peer.kind == Peer::Kind::nic);
      CHECK(peer.id == nic.value);
    }
  }
}

TEST_CASE("a machine of more groups than an address can name has NICs without one") {
  const Dragonfly dragonfly{Spec::parse("topology.kinds 2\ntopology.ports_per_switch 64\n" +
                                        kind_text(0, "compute", 257, 32, 32, 1, "spread") +
                                        kind_text(1, "service", 257, 32, 32, 1, "spread") +
                                        "topology.global.0.0 1\ntopology.global.0.1 1\ntopology.global.1.1 1\n")};
  CHECK(fabric_address(dragonfly, NicId{0}) == 31 + 17);  // behind the local and global links
  CHECK_FALSE(fabric_address(dragonfly, NicId{dragonfly.nic_count() - 1}).has_value());
}

}  // namespace
}  // namespace dryfly
