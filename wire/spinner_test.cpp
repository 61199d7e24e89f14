#include "wire/spinner.hpp"

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
#include <unistd.h>

namespace dryfly::wire {
namespace {

// A wait in which another process seems to have the processor for long.
void long_step(Spinner& spinner) {
  spinner.spin(10, [] {
    usleep(1'000);
    return false;
  });
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

TEST_CASE("after a long step waits do not spin, and twice as many after the next") {
  Spinner spinner{0};
  for (const int sleeps : {16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 4096}) {
    long_step(spinner);
    for (int wait = 0; wait < sleeps; ++wait) REQUIRE(looks(spinner) == 1);
  }
}

// On a busy computer another process may have the processor at any step, so it is tried a few times.
TEST_CASE("waits spin again when it has gone well for a while") {
  const auto spins_again = [] {
    Spinner spinner{0};
    long_step(spinner);
    for (int wait = 0; wait < 16 + 4 * 32; ++wait) spinner.spin(1, [] { return true; });
    long_step(spinner);
    for (int wait = 0; wait < 16; ++wait) REQUIRE(looks(spinner) == 1);
    return looks(spinner) == 3;
  };
  bool once = false;
  for (int attempt = 0; attempt < 20 && !once; ++attempt) once = spins_again();
  CHECK(once);
}

TEST_CASE("where many processes share the processors, more waits do not spin") {
  Spinner spinner{0};
  spinner.share_with(64);
  long_step(spinner);
  for (int wait = 0; wait < 512; ++wait) REQUIRE(looks(spinner) == 1);
}

}  // namespace
}  // namespace dryfly::wire
