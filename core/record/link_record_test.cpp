#include "core/record/link_record.hpp"

#include <doctest/doctest.h>

namespace dryfly {
namespace {

constexpr std::uint64_t us = 1'000'000;

TEST_CASE("a piece's time on a link is spread over the steps it touches") {
  LinkRecord record(10 * us);
  // From 10.5 us to 12.25 us: half of the first step, the second, a quarter of the third.
  record.carried({.port = 7,
                  .piece = 0,
                  .bytes = 100,
                  .start_ps = 10 * us + us / 2,
                  .end_ps = 12 * us + us / 4,
                  .now_ps = 13 * us});
  const LinkRecord::Link& link = record.links().at(7);
  REQUIRE(link.steps.size() == 3);
  CHECK(link.steps[0].busy_ps == us / 2);
  CHECK(link.steps[1].busy_ps == us);
  CHECK(link.steps[2].busy_ps == us / 4);
  CHECK(link.steps[0].data_bytes == 100);
  CHECK(link.steps[1].data_bytes == 0);
}

TEST_CASE("pieces that seem to overlap follow each other") {
  LinkRecord record(0);
  record.carried({.port = 1, .piece = 0, .bytes = 50, .start_ps = 1000, .end_ps = 5000, .now_ps = 6000});
  record.carried({.port = 1, .piece = 1, .bytes = 50, .start_ps = 4000, .end_ps = 8000, .now_ps = 9000});
  CHECK(record.links().at(1).busy_until_ps == 9000);
  CHECK(record.links().at(1).steps[0].busy_ps == 8000);
}

TEST_CASE("a piece waits from when its head could leave the switch until it does") {
  LinkRecord record(0);
  record.carried({.port = 1, .piece = 3, .bytes = 50, .start_ps = 0, .end_ps = 1000, .now_ps = 2000});
  record.carried({.port = 2, .piece = 3, .bytes = 50, .start_ps = 5000, .end_ps = 6000, .now_ps = 7000});
  CHECK(record.links().at(1).longest_wait_ps == 0);
  const LinkRecord::Link& second = record.links().at(2);
  CHECK(second.longest_wait_ps == 3000);
  CHECK(second.waits[12] == 1);  // 2,048 to 4,095 ps
  CHECK(second.steps[0].waiting_byte_ps == 3000 * 50);
}

TEST_CASE("the next packet of the same number has not waited since the one before came to its end") {
  LinkRecord record(0);
  record.carried({.port = 1, .piece = 0, .bytes = 9, .start_ps = 0, .end_ps = 10, .now_ps = 20});
  record.carried({.port = 2, .piece = 0, .bytes = 9, .to_nic = true, .start_ps = 20, .end_ps = 30, .now_ps = 40});
  record.carried({.port = 1, .piece = 0, .bytes = 9, .start_ps = 9000, .end_ps = 9010, .now_ps = 9020});
  CHECK(record.links().at(1).longest_wait_ps == 0);
}

TEST_CASE("acknowledgements keep a link busy and carry no data") {
  LinkRecord record(0);
  record.carried({.port = 1, .bytes = 35, .acknowledgement = true, .start_ps = 0, .end_ps = 1400});
  CHECK(record.links().at(1).steps[0].busy_ps == 1400);
  CHECK(record.links().at(1).steps[0].data_bytes == 0);
}

TEST_CASE("a run that outgrows the steps doubles them and loses nothing") {
  LinkRecord record(0);
  for (std::uint64_t n = 0; n < 3000; ++n) {
    record.carried({.port = 1, .piece = 0, .bytes = 10, .start_ps = n * us, .end_ps = n * us + 1000, .now_ps = n * us});
  }
  CHECK(record.step_ps() == 8 * us);  // 3,000 us in at most 512 steps
  std::uint64_t busy = 0;
  std::uint64_t bytes = 0;
  for (const LinkRecord::Step& step : record.links().at(1).steps) {
    busy += step.busy_ps;
    bytes += step.data_bytes;
  }
  CHECK(record.links().at(1).steps.size() == 375);
  CHECK(busy == 3000 * 1000);
  CHECK(bytes == 30'000);
}

TEST_CASE("what happened before the start is not in the record") {
  LinkRecord record(5000);
  record.carried({.port = 1, .piece = 0, .bytes = 10, .start_ps = 1000, .end_ps = 6000, .now_ps = 7000});
  CHECK(record.links().at(1).steps[0].busy_ps == 1000);
  CHECK(record.links().at(1).steps[0].data_bytes == 0);
}

}  // namespace
}  // namespace dryfly
