#include "rank/nic_choice.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace dryfly::rank;

namespace {

// What each local rank of a node of `ranks` is given.
std::vector<std::uint32_t> given(const std::string& node, std::uint32_t ranks, const NicSettings& settings) {
  std::vector<std::uint32_t> nics;
  for (std::uint32_t local = 0; local < ranks; ++local) {
    NodeNics here;
    const std::string text = node + " ranks=" + std::to_string(ranks) + " local=" + std::to_string(local);
    REQUIRE(read_node_nics(text.c_str(), here));
    std::uint32_t nic = 99;
    REQUIRE(choose_nic(here, settings, nic) == NicChoice::chosen);
    nics.push_back(nic);
  }
  return nics;
}

using Nics = std::vector<std::uint32_t>;

const std::string two_sockets = "nics=4 domains=2 sockets=2 at=0,0,1,1";
// As on MI250X nodes: one socket of four domains, a NIC in each, out of order; two GPUs in each.
const std::string four_domains = "nics=4 domains=4 sockets=1 at=3,1,0,2 gpus=3,3,1,1,0,0,2,2";

NicChoice choice(const NicSettings& settings) {
  NodeNics node;
  REQUIRE(read_node_nics("nics=2 local=1 ranks=2 domains=1 sockets=1 at=0,0", node));
  std::uint32_t nic = 0;
  return choose_nic(node, settings, nic);
}

}  // namespace

TEST_CASE("blocks of consecutive ranks share a NIC, the first blocks being the larger ones") {
  CHECK(given(two_sockets, 8, {}) == Nics{0, 0, 1, 1, 2, 2, 3, 3});
  CHECK(given("nics=2 domains=1 sockets=1 at=0,0", 7, {"BLOCK"}) == Nics{0, 0, 0, 0, 1, 1, 1});
}

TEST_CASE("round-robin deals the NICs in turn") {
  CHECK(given(two_sockets, 6, {"ROUND-ROBIN"}) == Nics{0, 1, 2, 3, 0, 1});
}

TEST_CASE("NUMA takes the NICs of the rank's own domain in turn") {
  // Ranks 0 to 3 are on socket 0, whose NICs are 0 and 1.
  CHECK(given(two_sockets, 8, {"NUMA"}) == Nics{0, 1, 0, 1, 2, 3, 2, 3});
  CHECK(given(four_domains, 4, {"NUMA"}) == Nics{2, 1, 3, 0});
}

TEST_CASE("NUMA takes a NIC of the own socket where the own domain has none") {
  CHECK(given("nics=2 domains=4 sockets=2 at=1,3", 4, {"NUMA"}) == Nics{0, 0, 1, 1});
}

TEST_CASE("GPU takes the NIC of the domain that the rank's GPU is in") {
  CHECK(given(four_domains, 8, {"GPU"}) == Nics{0, 0, 1, 1, 2, 2, 3, 3});
}

TEST_CASE("the user's mapping names local ranks, one by one and by ranges") {
  CHECK(given(two_sockets, 6, {"USER", "3:0; 1:1-3;0:4,5"}) == Nics{3, 1, 1, 1, 0, 0});
}

TEST_CASE("a number of NICs limits the choice, to the first ones or to those that are listed") {
  CHECK(given(two_sockets, 4, {"BLOCK", nullptr, "2"}) == Nics{0, 0, 1, 1});
  CHECK(given(two_sockets, 4, {"ROUND-ROBIN", nullptr, "2:1,3"}) == Nics{1, 3, 1, 3});
}

TEST_CASE("where the launcher has bound a rank, its own domain and GPU count, and a NIC that is named") {
  const auto chosen = [](const char* more, const NicSettings& settings) {
    NodeNics node;
    std::string text = "nics=4 local=3 ranks=4 domains=2 sockets=2 at=0,0,1,1 gpus=1,0 ";
    text += more;
    REQUIRE(read_node_nics(text.c_str(), node));
    std::uint32_t nic = 99;
    CHECK(choose_nic(node, settings, nic) == NicChoice::chosen);
    return nic;
  };
  CHECK(chosen("", {"NUMA"}) == 3);                 // the second rank of domain 1
  CHECK(chosen("domain=0 turn=0", {"NUMA"}) == 0);  // bound to the other one
  CHECK(chosen("domain=0 turn=3", {"NUMA"}) == 1);  // the fourth rank there, of two NICs
  CHECK(chosen("gpu=0 gputurn=1", {"GPU"}) == 3);   // GPU 0 is in domain 1
  CHECK(chosen("nic=2", {}) == 2);
  CHECK(chosen("nic=2", {"ROUND-ROBIN"}) == 3);  // a policy that is set counts more
}

TEST_CASE("settings that name no NIC are told apart") {
  CHECK(choice({"NEAREST"}) == NicChoice::unknown_policy);
  CHECK(choice({"USER"}) == NicChoice::bad_mapping);
  CHECK(choice({"USER", "0:0-1:1"}) == NicChoice::bad_mapping);
  CHECK(choice({"USER", "2:0,1"}) == NicChoice::bad_mapping);
  CHECK(choice({"USER", "0:1;1:1"}) == NicChoice::bad_mapping);
  CHECK(choice({"USER", "0:0"}) == NicChoice::not_mapped);
  CHECK(choice({"GPU"}) == NicChoice::no_gpus);
  CHECK(choice({"BLOCK", nullptr, "3"}) == NicChoice::bad_number);
  CHECK(choice({"BLOCK", nullptr, "2:0"}) == NicChoice::bad_number);
}

TEST_CASE("a description of a node that is not whole is none") {
  NodeNics node;
  CHECK_FALSE(read_node_nics(nullptr, node));
  CHECK_FALSE(read_node_nics("nics=4 colour=red", node));
  CHECK_FALSE(read_node_nics("nics=4 local=2 ranks=2", node));
}
