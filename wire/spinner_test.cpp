#include "wire/spinner.hpp"

#include <doctest/doctest.h>

namespace dryfly::wire {
namespace {

constexpr std::int64_t ms = 1'000'000;

// Whatever else runs on this computer, a step takes as long as a reading of this clock says.
struct TestClock {
  static inline std::int64_t at_ns = 1'000'000'000;
  static std::int64_t now_ns() { return at_ns += 400; }
};
using TestSpinner = BasicSpinner<TestClock>;

// A wait in which another process seems to have the processor for long.
void take_long_step(TestSpinner& spinner) {
  int looks = 0;
  spinner.spin(10, [&] {
    if (++looks == 2) TestClock::at_ns += 2'000'000;
    return looks > 2;
  });
}

int looks(TestSpinner& spinner) {
  int count = 0;
  spinner.spin(10, [&] { return ++count == 3; });
  return count;
}

// From a wait in which another process seems to have the processor for long to the next one that spins.
std::int64_t rest_ns(TestSpinner& spinner) {
  take_long_step(spinner);
  const std::int64_t began = TestClock::at_ns;
  CHECK(spinner.is_resting());
  while (looks(spinner) == 1) {
  }
  return TestClock::at_ns - began;
}

// A wait may have begun just before.
doctest::Approx about(std::int64_t ns) { return doctest::Approx(static_cast<double>(ns)).epsilon(0.01); }

TEST_CASE("a spin lasts until it is done, or for the steps allowed") {
  Spinner spinner{2};
  CHECK(spinner.spin(10, [] { return true; }));
  CHECK_FALSE(spinner.spin(10, [] { return false; }));
}

TEST_CASE("after a long step waits do not spin for a while, which is twice as long after the next") {
  TestSpinner spinner{0};
  for (const int expected : {1, 2, 4, 8, 16, 32, 64, 64}) {
    CHECK(rest_ns(spinner) == about(expected * ms));
  }
}

TEST_CASE("the while is half as long when spinning has gone well for four times as long") {
  TestSpinner spinner{0};
  for (int i = 0; i < 3; ++i) rest_ns(spinner);
  const auto spin_well_for = [&](std::int64_t duration_ns) {
    for (const std::int64_t began = TestClock::at_ns; TestClock::at_ns - began < duration_ns;) looks(spinner);
  };
  spin_well_for((32 + 16 + 8 + 1) * ms);  // the next would have been of 8 ms
  CHECK(rest_ns(spinner) == about(ms));
  rest_ns(spinner);
  spin_well_for(7 * ms);
  CHECK(rest_ns(spinner) == about(4 * ms));
}

TEST_CASE("where many processes share the processors, it is long from the beginning") {
  TestSpinner spinner{0};
  spinner.share_with(64);
  CHECK(rest_ns(spinner) == about(16 * ms));
}

}  // namespace
}  // namespace dryfly::wire
