// A program that loads MPI while it runs, and privately, as Python does. Run with the preload.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "preload/test/fake_mpi.hpp"

namespace {

std::uint64_t ns(const timespec& time) {
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(time.tv_nsec);
}

std::uint64_t read_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return ns(now);
}

std::uint64_t real_ns(clockid_t clock) {
  timespec now{};
  syscall(SYS_clock_gettime, clock, &now);
  return ns(now);
}

}  // namespace

TEST_CASE("the clock of a program that loads MPI late is real until MPI_Init and does not run backwards there") {
  const std::uint64_t real_before = real_ns(CLOCK_MONOTONIC);
  const std::uint64_t before = read_ns(CLOCK_MONOTONIC);
  CHECK(before >= real_before);
  CHECK(before - real_before < 1'000'000'000);

  void* library = dlopen(getenv("DRYFLY_FAKE_MPI"), RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  auto* fake = static_cast<FakeMpi*>(dlsym(library, "fake_mpi"));
  fake->header->costs.clock_read_ps = 25'000;
  // What a module of Python is bound to: the first definition of the process, which is the preload's.
  auto* init = reinterpret_cast<int (*)(int*, char***)>(dlsym(RTLD_DEFAULT, "MPI_Init"));
  REQUIRE((init != nullptr));
  REQUIRE(init(nullptr, nullptr) == 0);
  REQUIRE(fake->self != nullptr);
  CHECK(fake->gates[0] == static_cast<std::uint32_t>(dryfly::wire::GateKind::start));

  const std::uint64_t after = read_ns(CLOCK_MONOTONIC);
  CHECK(after > before);
  CHECK(after % 1'000'000'000'000'000 == 25);  // a whole number of millions of seconds, and the reading
  CHECK(read_ns(CLOCK_MONOTONIC) == after + 25);
  auto* send = reinterpret_cast<int (*)(long, int, int, int, int, int)>(dlsym(RTLD_DEFAULT, "MPI_Send"));
  CHECK(send(0, 3, 8, 1, 2, 3) == 0);
  CHECK(fake->words[1] == 3);
}
