#include "conductor/tally.hpp"

#include <doctest/doctest.h>

namespace dryfly {
namespace {

constexpr EndpointId of_rank_0{wire::make_address(0, 1)};
constexpr EndpointId of_rank_2{wire::make_address(2, 0)};

Received message(std::uint64_t bytes) { return {.at = of_rank_2, .source = of_rank_0, .size = Bytes{bytes}}; }

TEST_CASE("what comes before the start or after the stop is in no total and in no fingerprint") {
  const Engine engine;
  OpenCommands commands;
  Tally tally(engine, commands, 3);
  tally.received(message(10));
  CHECK(tally.before_start() == 1);
  CHECK(tally.totals().messages == 0);
  CHECK(tally.fingerprint().text() == Fingerprint{}.text());

  tally.start(Instant{0});
  tally.received(message(20));
  tally.accessed({.kind = RmaKind::write, .source = of_rank_2, .target = of_rank_0, .size = Bytes{30}}, false, 1);
  CHECK(tally.totals().messages == 2);
  CHECK(tally.totals().bytes == 50);
  const std::string then = tally.fingerprint().text();
  CHECK(then != Fingerprint{}.text());

  tally.stop();
  tally.reduced(of_rank_0, RankId{2}, Bytes{8});
  CHECK(tally.fingerprint().text() == then);
  CHECK(tally.totals().messages == 2);
}

TEST_CASE("the fingerprint knows ranks, not end-points, and a reduction enters it without being a message") {
  const Engine engine;
  OpenCommands commands;
  Tally tally(engine, commands, 3);
  tally.start(Instant{0});
  tally.reduced(of_rank_0, RankId{2}, Bytes{8});
  CHECK(tally.totals().messages == 0);
  Fingerprint expected;
  expected.add(Instant{0}, RankId{0}, RankId{2}, Bytes{8});
  CHECK(tally.fingerprint().text() == expected.text());
}

TEST_CASE("a message counts as sent when its NIC has it, an access when it reaches its target") {
  const Engine engine;
  OpenCommands commands;
  Tally tally(engine, commands, 3);
  tally.sent(RankId{0}, Bytes{100});
  tally.received(message(100));
  CHECK(tally.sent_by(RankId{0}).messages == 1);
  tally.accessed({.kind = RmaKind::read, .source = of_rank_2, .target = of_rank_0, .size = Bytes{30}}, false, 1);
  CHECK(tally.sent_by(RankId{2}).messages == 1);
  CHECK(tally.sent_by(RankId{2}).bytes == 30);
  CHECK(tally.sent_by(RankId{0}).bytes == 100);
}

}  // namespace
}  // namespace dryfly
