#include "rank/sidestep.hpp"

#include <doctest/doctest.h>

namespace dryfly::rank {
namespace {

TEST_CASE("a rank steps aside after many spins in a row on the conductor's processor, and may go anywhere") {
  cpu_set_t before;
  if (sched_getaffinity(0, sizeof before, &before) != 0 || CPU_COUNT(&before) < 2) return;
  // The scheduler may move this process as well, so each case is tried often.
  const auto moved = [&](int apart, std::uint32_t spins) {
    int moves = 0;
    for (int attempt = 0; attempt < 20; ++attempt) {
      Sidestep sidestep;
      const int here = sched_getcpu();
      const auto conductor = static_cast<std::uint32_t>(here + 1 + apart);
      for (std::uint32_t i = 0; i < spins; ++i) sidestep.after_spin(conductor);
      moves += sched_getcpu() != here ? 1 : 0;
    }
    return moves;
  };
  CHECK(moved(0, Sidestep::patience) >= 15);
  CHECK(moved(0, Sidestep::patience - 1) <= 5);
  CHECK(moved(100, 2 * Sidestep::patience) <= 5);
  cpu_set_t after;
  REQUIRE(sched_getaffinity(0, sizeof after, &after) == 0);
  CHECK(CPU_EQUAL(&before, &after));
}

TEST_CASE("a rank that sleeps on the conductor's processor may afterwards go where it might before") {
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof before, &before) == 0);
  int last = 0;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) last = CPU_ISSET(processor, &before) ? processor : last;
  cpu_set_t now;
  {
    const Sidestep::Stay stay(static_cast<std::uint32_t>(last) + 1);
    REQUIRE(sched_getaffinity(0, sizeof now, &now) == 0);
    CHECK(CPU_COUNT(&now) == 1);
    CHECK(sched_getcpu() == last);
  }
  REQUIRE(sched_getaffinity(0, sizeof now, &now) == 0);
  CHECK(CPU_EQUAL(&before, &now));
  const Sidestep::Stay anywhere(0);
  REQUIRE(sched_getaffinity(0, sizeof now, &now) == 0);
  CHECK(CPU_EQUAL(&before, &now));
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
}  // namespace dryfly::rank
