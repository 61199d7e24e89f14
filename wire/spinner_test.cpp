#include "wire/spinner.hpp"

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
#include <unistd.h>

namespace dryfly::wire {
namespace {

// A wait in which another process seems to have the processor for long. Returns an instant before the spinner's rest
// begins, which is between the last two looks, whoever else takes the processor.
std::int64_t long_step(Spinner& spinner) {
  int looks = 0;
  std::int64_t before_ns = 0;
  std::int64_t last_ns = 0;
  spinner.spin(10, [&] {
    if (++looks == 2) usleep(2'000);
    before_ns = last_ns;
    last_ns = Spinner::now_ns();
    return looks > 2;
  });
  return before_ns;
}

int looks(Spinner& spinner) {
  int count = 0;
  spinner.spin(10, [&] { return ++count == 3; });
  return count;
}

TEST_CASE("a spin lasts until it is done, or for the steps allowed") {
  Spinner spinner{2};
  CHECK(spinner.spin(10, [] { return true; }));
  CHECK_FALSE(spinner.spin(10, [] { return false; }));
}

// Milliseconds from a wait in which another process seems to have the processor for long to the next one that spins.
double rest_ms(Spinner& spinner) {
  const std::int64_t began = long_step(spinner);
  while (looks(spinner) == 1) {
  }
  return static_cast<double>(Spinner::now_ns() - began) / 1e6;
}

TEST_CASE("after a long step waits do not spin for a while, which is twice as long after the next") {
  Spinner spinner{0};
  for (const double least : {1, 2, 4, 8, 16, 32, 64, 64}) CHECK(rest_ms(spinner) >= least);
}

// On a busy computer another process may have the processor at any step, so it is tried a few times.
TEST_CASE("the while is short again when spinning has gone well") {
  const auto is_short_again = [] {
    Spinner spinner{0};
    for (int i = 0; i < 3; ++i) rest_ms(spinner);
    for (const std::int64_t began = Spinner::now_ns(); Spinner::now_ns() - began < 100'000'000;) looks(spinner);
    return rest_ms(spinner) < 3;
  };
  bool once = false;
  for (int attempt = 0; attempt < 20 && !once; ++attempt) once = is_short_again();
  CHECK(once);
}

TEST_CASE("where many processes share the processors, it is long from the beginning") {
  Spinner spinner{0};
  spinner.share_with(64);
  CHECK(rest_ms(spinner) >= 15);
}

}  // namespace
}  // namespace dryfly::wire
