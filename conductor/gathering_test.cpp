#include "conductor/gathering.hpp"

#include <doctest/doctest.h>

#include <memory>

namespace dryfly {
namespace {

int processors() {
  cpu_set_t allowed;
  REQUIRE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  return CPU_COUNT(&allowed);
}

void sleep_beside(Gathering& gathering, std::uint32_t busy, int times) {
  for (int i = 0; i < times; ++i) gathering.sleeps_beside(busy);
}

TEST_CASE("ranks gather on the conductor's processor after it has slept beside one of them at a time for a while") {
  const auto header = std::make_unique<wire::SegmentHeader>();
  const int before = processors();
  Gathering gathering{*header};
  sleep_beside(gathering, 1, 63);
  CHECK(header->gathering_processor == 0);
  sleep_beside(gathering, 0, 1);
  REQUIRE(header->gathering_processor != 0);
  CHECK(static_cast<int>(header->gathering_processor) == sched_getcpu() + 1);
  CHECK(processors() == 1);
  gathering.disperse();
  CHECK(header->gathering_processor == 0);
  CHECK(processors() == before);
}

TEST_CASE("they go apart where several act together, and not for one time") {
  const auto header = std::make_unique<wire::SegmentHeader>();
  const int before = processors();
  Gathering gathering{*header};
  sleep_beside(gathering, 1, 100);
  sleep_beside(gathering, 2, 7);
  CHECK(header->gathering_processor != 0);
  sleep_beside(gathering, 2, 1);
  CHECK(header->gathering_processor == 0);
  CHECK(processors() == before);
}

}  // namespace
}  // namespace dryfly
