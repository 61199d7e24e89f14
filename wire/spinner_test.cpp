#include "wire/spinner.hpp"

#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
#include <unistd.h>

#include "wire/sidestep.hpp"

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

TEST_CASE("waits spin again when it has gone well for a while") {
  Spinner spinner{0};
  long_step(spinner);
  for (int wait = 0; wait < 16 + 4 * 32; ++wait) spinner.spin(1, [] { return true; });
  long_step(spinner);
  for (int wait = 0; wait < 16; ++wait) REQUIRE(looks(spinner) == 1);
  CHECK(looks(spinner) == 3);
}

TEST_CASE("where many processes share the processors, more waits do not spin") {
  Spinner spinner{0};
  spinner.share_with(64);
  long_step(spinner);
  for (int wait = 0; wait < 512; ++wait) REQUIRE(looks(spinner) == 1);
}

TEST_CASE("a rank steps aside after many crowded spins in a row on the conductor's processor, and may go anywhere") {
  cpu_set_t before;
  if (sched_getaffinity(0, sizeof before, &before) != 0 || CPU_COUNT(&before) < 2) return;
  // The scheduler may move this process as well, so each case is tried often.
  const auto moved = [&](bool crowded, int apart, std::uint32_t spins) {
    int moves = 0;
    for (int attempt = 0; attempt < 20; ++attempt) {
      Sidestep sidestep;
      const int here = sched_getcpu();
      const auto conductor = static_cast<std::uint32_t>(here + 1 + apart);
      for (std::uint32_t i = 0; i < spins; ++i) sidestep.after_spin(crowded, conductor);
      moves += sched_getcpu() != here ? 1 : 0;
    }
    return moves;
  };
  CHECK(moved(true, 0, Sidestep::patience) >= 15);
  CHECK(moved(true, 0, Sidestep::patience - 1) <= 5);
  CHECK(moved(false, 0, 2 * Sidestep::patience) <= 5);
  CHECK(moved(true, 100, 2 * Sidestep::patience) <= 5);
  cpu_set_t after;
  REQUIRE(sched_getaffinity(0, sizeof after, &after) == 0);
  CHECK(CPU_EQUAL(&before, &after));
}

TEST_CASE("a rank that is bound to the conductor's processor stays there") {
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  const int here = sched_getcpu();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(here, &one);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  Sidestep::leave(here);
  CHECK(sched_getcpu() == here);
  REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
}

}  // namespace
}  // namespace dryfly::wire
