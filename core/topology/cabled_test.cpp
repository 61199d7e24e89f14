#include <doctest/doctest.h>

#include <string>

#include "core/topology/dragonfly.hpp"

namespace dryfly {
namespace {

// Three groups of three switches and two nodes of two NICs; two links between groups when dealt.
std::string head() {
  const std::string kind = "topology.kind.0.";
  return "topology.kinds 1\ntopology.ports_per_switch 16\n" + kind + "name compute\n" + kind + "groups 3\n" + kind +
         "switches 3\n" + kind + "nodes 2\n" + kind + "nics_per_node 2\n" + kind + "attach same_switch\n" + kind +
         "local_links 2\ntopology.global.0.0 2\n";
}

std::string cabled(const Dragonfly& dealt) {
  std::string cables;
  std::uint32_t count = 0;
  for (std::uint32_t from = 0; from < dealt.group_count(); ++from) {
    for (std::uint32_t to = from + 1; to < dealt.group_count(); ++to) {
      for (const GlobalEnd& end : dealt.global_ends({from}, {to})) {
        cables += "topology.cable." + std::to_string(count++) + " " + std::to_string(end.near.value) + " " +
                  std::to_string(end.far.value) + "\n";
      }
    }
  }
  for (std::uint32_t node = 0; node < dealt.node_count(); ++node) {
    cables += "topology.node." + std::to_string(node) + ".switches";
    for (std::uint32_t nic = 0; nic < dealt.nics_per_node({node}); ++nic) {
      cables += " " + std::to_string(dealt.switch_of(dealt.nic_of({node}, nic)).value);
    }
    cables += "\n";
  }
  return "topology.cables " + std::to_string(count) + "\n" + cables;
}

std::string replaced(std::string text, const std::string& old, const std::string& with) {
  return text.replace(text.find(old), old.size(), with);
}

std::string message_of(const std::string& text) {
  try {
    Dragonfly{Spec::parse(text)};
  } catch (const SpecError& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("a machine whose dealt cables are listed one by one is the same machine, port by port") {
  const Dragonfly dealt{Spec::parse(head())};
  const Dragonfly listed{Spec::parse(head() + cabled(dealt))};
  REQUIRE(listed.port_count() == dealt.port_count());
  CHECK(listed.global_link_count() == 6);
  for (std::uint32_t at = 0; at < dealt.switch_count(); ++at) {
    REQUIRE(listed.ports_of({at}) == dealt.ports_of({at}));
    for (std::uint32_t port = 0; port < dealt.ports_of({at}); ++port) {
      CHECK(listed.peer({at}, port).kind == dealt.peer({at}, port).kind);
      CHECK(listed.peer({at}, port).id == dealt.peer({at}, port).id);
      CHECK(listed.peer({at}, port).port == dealt.peer({at}, port).port);
    }
  }
}

TEST_CASE("a listed cable and NIC are where the list says") {
  const std::string text = cabled(Dragonfly{Spec::parse(head())});
  const std::string moved = replaced(text, "topology.node.0.switches 0 0", "topology.node.0.switches 2 1");
  const Dragonfly listed{Spec::parse(head() + replaced(moved, "topology.cable.0 0 3", "topology.cable.0 2 5"))};
  CHECK(listed.switch_of({0}) == SwitchId{2});
  CHECK(listed.switch_of({1}) == SwitchId{1});
  CHECK(listed.global_ends({0}, {1})[0].near == SwitchId{2});
  CHECK(listed.global_ends({1}, {0})[0].far == SwitchId{2});
}

TEST_CASE("a list that cannot be is refused with the field") {
  const std::string text = head() + cabled(Dragonfly{Spec::parse(head())});
  CHECK(message_of(replaced(text, "cable.0 0 3", "cable.0 0 1")).find("topology.cable.0") == 0);
  CHECK(message_of(replaced(text, "cable.0 0 3", "cable.0 0 9")).find("accepted are switches 0 to 8") !=
        std::string::npos);
  CHECK(message_of(replaced(text, "node.0.switches 0 0", "node.0.switches 0 3")).find("topology.node.0.switches") == 0);
  CHECK(message_of(replaced(replaced(text, "cable.0 0 3", "cable.0 0 6"), "cable.1 1 4", "cable.1 1 7"))
            .find("group 0 cannot reach those of group 1") != std::string::npos);
  CHECK(message_of(replaced(text, "ports_per_switch 16", "ports_per_switch 7")).find("ports_per_switch = 7") !=
        std::string::npos);
}

}  // namespace
}  // namespace dryfly
