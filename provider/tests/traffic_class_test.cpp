#include "provider/traffic_class.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "provider/ep.hpp"
#include "provider/memory.hpp"
#include "provider/tests/rig.hpp"

using namespace dryfly::provider;
using namespace dryfly::test;

namespace {

constexpr std::uint32_t nothing = FI_TC_UNSPEC;
constexpr int refused = 99;

int class_of(std::uint32_t endpoint, std::uint32_t domain) {
  std::uint8_t traffic_class = refused;
  return traffic_class_of(endpoint, domain, traffic_class) ? traffic_class : refused;
}

}  // namespace

TEST_CASE("an end-point's label counts before its domain's, and best effort where neither says anything") {
  CHECK(class_of(FI_TC_LOW_LATENCY, FI_TC_BULK_DATA) == 1);
  CHECK(class_of(nothing, FI_TC_BULK_DATA) == 2);
  CHECK(class_of(nothing, FI_TC_DEDICATED_ACCESS) == 0);
  CHECK(class_of(nothing, nothing) == 3);
}

TEST_CASE("the default of who asks for nothing can be set, under Cray MPICH's names") {
  setenv("MPICH_OFI_DEFAULT_TCLASS", "TC_LOW_LATENCY", 1);
  CHECK(class_of(nothing, nothing) == 1);
  CHECK(class_of(FI_TC_BEST_EFFORT, nothing) == 3);
  unsetenv("MPICH_OFI_DEFAULT_TCLASS");
}

TEST_CASE("a class that does not exist is refused, and one that the profile lacks as the user wants it") {
  char text[256] = "";
  const auto check = [&](const char* wanted, const char* errors) {
    setenv("MPICH_OFI_DEFAULT_TCLASS", wanted, 1);
    setenv("MPICH_OFI_TCLASS_ERRORS", errors, 1);
    text[0] = 0;
    return check_class_settings(text, sizeof text);
  };
  setenv("DRYFLY_TRAFFIC_CLASSES", "low_latency,best_effort", 1);
  CHECK(check("TC_LOW_LATENCY", "error") == ClassSettings::fine);
  CHECK(check("", "") == ClassSettings::fine);
  CHECK(check("TC_FOO", "silent") == ClassSettings::refused);
  CHECK(std::string(text) ==
        "MPICH_OFI_DEFAULT_TCLASS=TC_FOO: accepted is TC_BEST_EFFORT, TC_LOW_LATENCY, TC_BULK_DATA, "
        "TC_DEDICATED_ACCESS or TC_SCAVENGER");
  CHECK(check("", "maybe") == ClassSettings::refused);
  CHECK(std::string(text) == "MPICH_OFI_TCLASS_ERRORS=maybe: accepted is warn, silent or error");
  CHECK(check("TC_BULK_DATA", "error") == ClassSettings::refused);
  CHECK(check("TC_BULK_DATA", "silent") == ClassSettings::fine);
  CHECK(check("TC_BULK_DATA", "warn") == ClassSettings::doubtful);
  CHECK(std::string(text) ==
        "MPICH_OFI_DEFAULT_TCLASS=TC_BULK_DATA: the machine's QoS profile has low_latency,best_effort only; it travels "
        "in the profile's default class");
  for (const char* name : {"MPICH_OFI_DEFAULT_TCLASS", "MPICH_OFI_TCLASS_ERRORS", "DRYFLY_TRAFFIC_CLASSES"}) {
    unsetenv(name);
  }
}

TEST_CASE("what is no label is refused") {
  CHECK(class_of(fi_tc_dscp_set(10), nothing) == refused);
  CHECK(class_of(FI_TC_NETWORK_CTRL, nothing) == refused);
}

TEST_CASE("each command of an end-point names its class") {
  Rig rig;
  fi_info* info = nullptr;
  Hints hints;
  hints.transmit.tclass = FI_TC_BULK_DATA;
  REQUIRE(get_info(&hints.info, &info) == 0);
  fid_ep* endpoint = nullptr;
  REQUIRE(fi_endpoint(rig.domain, info, &endpoint, nullptr) == 0);
  CHECK(object_of<Endpoint>(endpoint)->command(dryfly::wire::CommandKind::send).traffic_class == 2);
  info->tx_attr->tclass = 0x1ff;
  fid_ep* other = nullptr;
  CHECK(fi_endpoint(rig.domain, info, &other, nullptr) == -FI_EINVAL);
  CHECK(fi_close(&endpoint->fid) == 0);
  release(info);
}
