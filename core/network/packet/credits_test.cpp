#include "core/network/packet/credits.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "core/unit/random.hpp"

namespace dryfly::fabric {
namespace {

TEST_CASE("a credit counts from the instant it is home, in whatever order returns were noted") {
  LargeVector<Credits::Line> lines;
  Credits credits{lines, 1, Bytes{300}, Bytes{100}};
  for (int i = 0; i < 3; ++i) credits.take(0, 100);
  CHECK(!credits.ready(0, 10));
  CHECK(credits.ready_at(0, 10) == never.ps);
  credits.give_back(0, 60, 50, 10);
  CHECK(credits.ready_at(0, 10) == never.ps);
  credits.give_back(0, 40, 30, 11);
  credits.give_back(0, 100, 40, 12);
  // 40 at 30, 140 at 40: a frame of 100 fits from 40 on.
  CHECK(credits.ready_at(0, 12) == 40);
  CHECK(!credits.ready(0, 39));
  CHECK(credits.ready(0, 40));
  CHECK(credits.outstanding(40) == 160);
  CHECK(credits.outstanding(50) == 100);
}

// The reference keeps every return in an ordered map and adds up.
TEST_CASE("random takes and returns equal a plain sum over all returns") {
  const RandomStream random{1, 0, Purpose::test};
  std::uint64_t draws = 0;
  constexpr std::uint32_t buffer = 1'000;
  constexpr std::uint32_t frame = 100;
  LargeVector<Credits::Line> lines;
  Credits credits{lines, 1, Bytes{buffer}, Bytes{frame}};
  std::multimap<std::uint64_t, std::uint32_t> returns;
  std::uint32_t taken = 0;  // and no return noted
  std::uint64_t now = 0;
  for (int step = 0; step < 20'000; ++step) {
    now += random.below(draws++, 20);
    std::uint32_t under_way = 0;
    for (auto at = returns.upper_bound(now); at != returns.end(); ++at) under_way += at->second;
    const std::uint32_t free = buffer - taken - under_way;
    std::uint32_t later = free;
    std::uint64_t ready_at = free >= frame ? now : never.ps;
    for (auto at = returns.upper_bound(now); at != returns.end() && ready_at == never.ps; ++at) {
      later += at->second;
      if (later >= frame) ready_at = at->first;
    }
    REQUIRE(credits.ready(0, now) == (free >= frame));
    REQUIRE(credits.ready_at(0, now) == ready_at);
    REQUIRE(credits.outstanding(now) == taken + under_way);
    const std::uint32_t bytes = 1 + random.below(draws++, frame);
    if (free >= frame) {
      credits.take(0, bytes);
      taken += bytes;
    } else if (taken > 0) {
      const std::uint32_t back = std::min(bytes, taken);
      const std::uint64_t at = now + 1 + random.below(draws++, 200);
      credits.give_back(0, back, at, now);
      returns.emplace(at, back);
      taken -= back;
    }
  }
}

}  // namespace
}  // namespace dryfly::fabric
