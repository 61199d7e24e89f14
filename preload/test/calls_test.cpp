// The MPI interposer: forwarding, profile, modes, gates, and the program's own computing. Run with the preload.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>
#include <thread>

#include "preload/mpi/call_names.hpp"
#include "preload/test/fake_mpi.hpp"

using dryfly::rank::CallMode;
using dryfly::wire::ComputeMode;
using dryfly::wire::GateKind;

namespace {

constexpr int in_place = -1;  // MPICH's MPI_IN_PLACE

std::uint32_t index_of(const char* name) {
  for (std::uint32_t i = 0; i < dryfly::preload::call_name_count; ++i) {
    if (std::strcmp(dryfly::preload::call_names[i], name) == 0) return i;
  }
  FAIL("no such call: ", name);
  return 0;
}

const dryfly::wire::CallProfile& profile(const char* name) { return fake_mpi.page->profile[index_of(name)]; }

// Bytes that `action` adds to the profile of `name`.
template <typename Action>
std::uint64_t bytes_of(const char* name, Action action) {
  const std::uint64_t before = profile(name).bytes;
  action();
  return profile(name).bytes - before;
}

void begin() {
  if (fake_mpi.self == nullptr) REQUIRE(MPI_Init(nullptr, nullptr) == 0);
}

std::uint64_t cpu_ns() {
  timespec now{};
  syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

void compute(std::uint64_t ns) {
  const std::uint64_t until = cpu_ns() + ns;
  while (cpu_ns() < until) {
  }
}

}  // namespace

TEST_CASE("run: MPI_Init makes the library's first requests and says where they are; none stays open") {
  begin();
  CHECK(fake_mpi.open_requests == 0);
  REQUIRE(fake_mpi.request_block != nullptr);
  const auto& block = fake_mpi.self->first_requests;
  CHECK(block.first == fake_mpi.request_block);
  CHECK(block.count == (2 << 20) / 4096);
}

TEST_CASE("run: arguments arrive unchanged, also those on the stack") {
  begin();
  char a[1];
  char b[1];
  MPI_Sendrecv(a, 1, 2, 3, -4, b, 6, 7, 8, 9, 10, &a);
  const long sent[] = {reinterpret_cast<long>(a), 1, 2, 3, -4, reinterpret_cast<long>(b), 6, 7, 8, 9, 10,
                       reinterpret_cast<long>(a)};
  for (int i = 0; i < 12; ++i) CHECK(fake_mpi.words[i] == sent[i]);
  int request = 0;
  MPI_Rget_accumulate(a, 1, 2, b, 4, 5, 6, 1L << 40, 8, 9, 10, 11, &request);
  CHECK(fake_mpi.words[7] == 1L << 40);
  CHECK(fake_mpi.words[11] == 11);
  CHECK(fake_mpi.words[12] == reinterpret_cast<long>(&request));
}

TEST_CASE("run: the provider sees what kind of call it is in, and which") {
  begin();
  int request = 0;
  MPI_Send(nullptr, 1, 8, 1, 0, 0);
  CHECK(fake_mpi.mode == static_cast<std::uint32_t>(CallMode::blocking));
  CHECK(fake_mpi.call_index == index_of("MPI_Send") + 1);
  MPI_Isend(nullptr, 1, 8, 1, 0, 0, &request);
  CHECK(fake_mpi.mode == static_cast<std::uint32_t>(CallMode::testing));
  CHECK(fake_mpi.self->call_mode.load() == static_cast<std::uint32_t>(CallMode::unmarked));
  CHECK(fake_mpi.page->call_index.load() == 0);
  const std::uint32_t gates = fake_mpi.gate_count;
  MPI_Comm_spawn("child", nullptr, 1, 0, 0, 0, &request, nullptr);
  CHECK(fake_mpi.mode == static_cast<std::uint32_t>(CallMode::outside));
  REQUIRE(fake_mpi.gate_count == gates + 2);
  CHECK(fake_mpi.gates[gates % 8] == static_cast<std::uint32_t>(GateKind::outside));
  CHECK(fake_mpi.gates[(gates + 1) % 8] == static_cast<std::uint32_t>(GateKind::inside));
}

TEST_CASE("run: bytes follow from the arguments") {
  begin();
  // Four processes; the handle of a datatype is its size.
  CHECK(bytes_of("MPI_Send", [] { MPI_Send(nullptr, 3, 8, 1, 0, 0); }) == 24);
  CHECK(bytes_of("MPI_Send_c", [] { MPI_Send_c(nullptr, 1LL << 33, 8, 1, 0, 0); }) == 8ULL << 33);
  CHECK(bytes_of("MPI_Bcast", [] { MPI_Bcast(nullptr, 5, 4, 0, 0); }) == 20);
  CHECK(bytes_of("MPI_Bcast", [] { MPI_Bcast(nullptr, 5, 4, -3, 0); }) == 0);  // MPI_ROOT's or a bystander's
  CHECK(bytes_of("MPI_Allgather", [] { MPI_Allgather(nullptr, 5, 4, nullptr, 6, 8, 0); }) == 20);
  void* const place = reinterpret_cast<void*>(in_place);
  CHECK(bytes_of("MPI_Allgather", [&] { MPI_Allgather(place, 5, 4, nullptr, 6, 8, 0); }) == 48);
  CHECK(bytes_of("MPI_Alltoall", [] { MPI_Alltoall(nullptr, 5, 4, nullptr, 6, 8, 0); }) == 4 * 20);
  const int counts[] = {1, 2, 3, 4};
  const int zeros[] = {0, 0, 0, 0};
  CHECK(bytes_of("MPI_Alltoallv", [&] { MPI_Alltoallv(nullptr, counts, zeros, 8, nullptr, counts, zeros, 4, 0); }) ==
        80);
  CHECK(bytes_of("MPI_Alltoallv", [&] { MPI_Alltoallv(place, nullptr, nullptr, 0, nullptr, counts, zeros, 4, 0); }) ==
        40);
  fake_mpi.status = 15;  // a call that failed has moved nothing, and its handles may be wrong
  CHECK(bytes_of("MPI_Send", [] { CHECK(MPI_Send(nullptr, 3, 8, 1, 0, 0) == 15); }) == 0);
  fake_mpi.status = 0;
}

TEST_CASE("run: only the outermost call is counted, and the three times add up to the clock") {
  begin();
  const dryfly::wire::RankTimes before = fake_mpi.page->times;
  MPI_Barrier(0);
  const std::uint64_t start = fake_mpi.self->now_ps.load();
  const std::uint64_t sends = profile("MPI_Send").count;
  const std::uint64_t bcasts = profile("MPI_Bcast").time_ps;
  fake_mpi.nested = true;
  fake_mpi.takes_ps = 700;  // taken by the Send inside
  fake_mpi.waits_ps = 300;
  MPI_Bcast(nullptr, 1, 1, 0, 0);
  fake_mpi.nested = false;
  CHECK(profile("MPI_Send").count == sends);
  CHECK(profile("MPI_Bcast").time_ps == bcasts + 700);
  const timespec nap{0, 5};
  nanosleep(&nap, nullptr);
  MPI_Barrier(0);
  const dryfly::wire::RankTimes after = fake_mpi.page->times;
  CHECK(after.waiting_ps - before.waiting_ps == 300);
  CHECK(after.communicating_ps - before.communicating_ps == 400);
  CHECK(after.computing_ps - before.computing_ps == 5000);
  CHECK(fake_mpi.self->now_ps.load() - start == 5700);
}

TEST_CASE("whole life: the gates are start and end, and MPI is served until all have ended") {
  fake_mpi.provided = 3;
  int provided = 0;
  REQUIRE(MPI_Init_thread(nullptr, nullptr, 3, &provided) == 0);
  MPI_Barrier(0);
  CHECK(fake_mpi.self->thread_multiple.load() == 0);  // allowed to, but there is only one thread
  std::thread([] { MPI_Barrier(0); }).join();
  CHECK(fake_mpi.self->thread_multiple.load() == 1);
  CHECK(profile("MPI_Barrier").count == 2);
  CHECK(profile("MPI_Init_thread").count == 1);
  REQUIRE(MPI_Finalize() == 0);
  // The fake lets the end gate through after two tests.
  const std::uint32_t expected[] = {
      static_cast<std::uint32_t>(GateKind::start), static_cast<std::uint32_t>(GateKind::end),
      static_cast<std::uint32_t>(GateKind::end), static_cast<std::uint32_t>(GateKind::end)};
  REQUIRE(fake_mpi.gate_count == 4);
  for (int i = 0; i < 4; ++i) CHECK(fake_mpi.gates[i] == expected[i]);
  CHECK(fake_mpi.tests == 2);
  CHECK(fake_mpi.open_requests == 0);
  CHECK(fake_mpi.mode == static_cast<std::uint32_t>(CallMode::outside));
  CHECK(profile("MPI_Finalize").count == 1);
  const std::uint64_t publishes = fake_mpi.publishes;
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  CHECK(fake_mpi.publishes == publishes);  // nobody is there any more
}

namespace {

// The program whose computing is recorded and replayed: two long gaps, and one in which nothing is done.
void compute_and_finalize() {
  MPI_Barrier(0);
  compute(20'000'000);
  MPI_Wtime();  // within a gap
  compute(10'000'000);
  MPI_Barrier(0);
  MPI_Barrier(0);
  compute(5'000'000);
  MPI_Barrier(0);
  REQUIRE(MPI_Finalize() == 0);
}

std::string clock_file() { return std::string(getenv("DRYFLY_TEST_FOLDER")) + "/clock"; }

void begin_computing(ComputeMode mode) {
  fake_mpi.header->compute.mode = mode;
  fake_mpi.header->compute.factor_ppm = 2'000'000;
  begin();
}

}  // namespace

TEST_CASE("record: CPU time outside MPI moves the clock by the factor, without the looks at the CPU clock") {
  const std::uint64_t cpu = cpu_ns();  // the first gap begins within begin_computing
  begin_computing(ComputeMode::measured);
  compute_and_finalize();
  const std::uint64_t all_ns = cpu_ns() - cpu;
  const dryfly::wire::RankTimes& times = fake_mpi.page->times;
  CHECK(times.measured_ns >= 35'000'000);  // 20 + 10 + 5 ms
  CHECK(times.measured_ns + times.looked_ns <= all_ns);
  CHECK(times.looked_ns > 0);
  // Twice the measured time; each of the two gaps is rounded down to a picosecond. The reading itself is free here.
  CHECK(times.computing_ps <= 2000 * times.measured_ns);
  CHECK(times.computing_ps + 2 >= 2000 * times.measured_ns);
  FILE* file = fopen(clock_file().c_str(), "w");
  REQUIRE(file != nullptr);
  fprintf(file, "%llu", static_cast<unsigned long long>(fake_mpi.self->now_ps.load()));
  fclose(file);
}

namespace {

// About as long as a look at the CPU clock. A function of its own, so that the same code runs in all gaps; and in
// registers: a loop through memory takes some processors twice as long behind each system call.
__attribute__((noinline)) void work_shortly() {
  std::uint64_t value = 1;
  for (int i = 0; i < 1200; ++i) {
    value = value * 6'364'136'223'846'793'005U + 1;
    asm volatile("" : "+r"(value));
  }
}

}  // namespace

TEST_CASE("short: what is computed in many short gaps adds up to what the same takes in one") {
  begin_computing(ComputeMode::measured);
  constexpr int gaps = 5000;
  const auto measured = [](const auto& program) {
    MPI_Barrier(0);
    const std::uint64_t before = fake_mpi.page->times.measured_ns;
    program();
    MPI_Barrier(0);
    return static_cast<double>(fake_mpi.page->times.measured_ns - before);
  };
  // What else runs on the computer comes and goes: all three in turn, and the middle one of many attempts.
  constexpr int attempts = 15;
  double many_to_one[attempts];
  double none_to_one[attempts];
  for (int attempt = 0; attempt < attempts; ++attempt) {
    const double in_one = measured([&] {
      for (int i = 0; i < gaps; ++i) work_shortly();
    });
    const double in_many = measured([&] {
      for (int i = 0; i < gaps; ++i) {
        work_shortly();
        MPI_Barrier(0);
      }
    });
    const double in_none = measured([&] {
      for (int i = 0; i < gaps; ++i) MPI_Barrier(0);
    });
    many_to_one[attempt] = in_many / in_one;
    none_to_one[attempt] = in_none / in_one;
  }
  std::sort(std::begin(many_to_one), std::end(many_to_one));
  std::sort(std::begin(none_to_one), std::end(none_to_one));
  CHECK(many_to_one[attempts / 2] == doctest::Approx(1).epsilon(0.25));
  CHECK(none_to_one[attempts / 2] < 0.2);
}

namespace {

// As the conductor asks.
void ask_for(std::uint64_t instant_ps) {
  fake_mpi.page->notify_at_ps.store(instant_ps);
  fake_mpi.page->progress.asked.fetch_add(1);
  syscall(SYS_futex, &fake_mpi.page->progress.asked, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

std::uint64_t told_ps() { return fake_mpi.page->progress.reached_ps.load(); }

// Until that much has been told, or a second of its own time has gone.
bool compute_until_told(std::uint64_t instant_ps) {
  const std::uint64_t until = cpu_ns() + 1'000'000'000;
  while (told_ps() < instant_ps && cpu_ns() < until) {
  }
  return told_ps() >= instant_ps;
}

}  // namespace

TEST_CASE(
    "told: while the main thread computes it is told how far it has come, and no further than its clock then is") {
  begin_computing(ComputeMode::measured);
  REQUIRE(fake_mpi.page->progress.has_herald.load() == 1);
  for (int i = 0; i < 20; ++i) {
    MPI_Barrier(0);
    const std::uint64_t base_ps = fake_mpi.self->now_ps.load();
    ask_for(base_ps + 1'000'000'000);  // half a millisecond of computing: its clock goes twice as fast
    CHECK(compute_until_told(base_ps + 1'000'000'000));
    CHECK(fake_mpi.page->notify_at_ps.load() == dryfly::wire::far_future);
    CHECK(fake_mpi.self->now_ps.load() == base_ps);
    MPI_Barrier(0);
    CHECK(fake_mpi.self->now_ps.load() >= told_ps());
  }
}

TEST_CASE("told: who reads a clock meanwhile reads no less than was told, and goes on being asked") {
  begin_computing(ComputeMode::measured);
  MPI_Barrier(0);
  std::uint64_t asked_ps = fake_mpi.self->now_ps.load();
  for (int i = 0; i < 10; ++i) {
    asked_ps += 1'000'000'000;
    ask_for(asked_ps);
    CHECK(compute_until_told(asked_ps));
    MPI_Wtime();
    CHECK(fake_mpi.self->now_ps.load() >= told_ps());
  }
}

TEST_CASE("told: what has been told binds the clock, also in a call that the interposer does not know") {
  begin_computing(ComputeMode::measured);
  MPI_Barrier(0);
  dryfly::rank::Self& self = *fake_mpi.self;
  const auto tell_ns = [&](std::uint64_t ns) {
    REQUIRE(self.telling.bits.load() != 0);
    self.telling.bits.fetch_add(ns);
    return self.now_ps.load() + 1000 * ns;
  };
  const std::uint64_t much_ps = tell_ns(80'000'000);
  MPI_Barrier(0);
  CHECK(self.now_ps.load() == much_ps);
  const std::uint64_t more_ps = tell_ns(50'000'000);
  self.end_telling();  // as the provider does
  CHECK(self.now_ps.load() == more_ps);
  CHECK(self.telling.bits.load() == 0);
}

TEST_CASE("told: the thread that tells does not make a process of one thread one of several") {
  begin_computing(ComputeMode::measured);
  CHECK(__libc_single_threaded);
  errno = ERANGE;
  MPI_Barrier(0);
  ask_for(fake_mpi.self->now_ps.load() + 1'000'000);
  compute(3'000'000);
  CHECK(errno == ERANGE);
}

// The last of them: it stays so.
TEST_CASE("told: nothing is told of a program of which another thread calls MPI") {
  begin_computing(ComputeMode::measured);
  MPI_Barrier(0);
  CHECK(fake_mpi.self->telling.bits.load() != 0);
  std::thread([] { MPI_Send(nullptr, 1, 8, 1, 0, 0); }).join();
  CHECK(fake_mpi.self->telling.bits.load() == 0);
  MPI_Barrier(0);
  CHECK(fake_mpi.self->telling.bits.load() == 0);
}

TEST_CASE("model: announced work takes the roof line's time of the faster place, and nothing else takes any") {
  begin_computing(ComputeMode::model);
  dryfly::wire::SegmentHeader& header = *fake_mpi.header;
  header.compute.cpu = {.latency_ps = 0, .memory_bytes_per_s = 100'000'000'000, .operations_per_s = {1, 2, 4}};
  for (std::uint64_t& rate : header.compute.cpu.operations_per_s) rate *= 1'000'000'000'000;
  header.compute.gpu = {
      .latency_ps = 5'000'000, .memory_bytes_per_s = 1'000'000'000'000, .operations_per_s = {20, 40, 400}};
  for (std::uint64_t& rate : header.compute.gpu.operations_per_s) rate *= 1'000'000'000'000;
  fake_mpi.page->share.ranks_on_node = 2;
  using Work = void (*)(int, int, std::int64_t, std::int64_t, std::int64_t);
  const auto work = reinterpret_cast<Work>(dlsym(RTLD_DEFAULT, "dryfly_work"));
  const auto mode = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "dryfly_work_mode"));
  REQUIRE((work != nullptr && mode != nullptr));
  CHECK(mode() == 1);
  const auto takes = [&](int kind, int precision, std::int64_t m, std::int64_t n, std::int64_t k) {
    const std::uint64_t before = fake_mpi.self->now_ps.load();
    work(kind, precision, m, n, k);
    return fake_mpi.self->now_ps.load() - before;
  };
  // 2 x 1000^3 operations at half of 20 TF/s: 200 us, and 5 us; the processors would take 4 ms.
  CHECK(takes(0, 0, 1000, 1000, 1000) == 205'000'000);
  // In 16 bits at half of 400 TF/s: 10 us; its operands of 8 MB take 16 us at half of 1 TB/s.
  CHECK(takes(0, 2, 1000, 1000, 1000) == 21'000'000);
  // 8 x (8 x 8 + 8 x 8 + 2 x 8 x 8) bytes at half of 100 GB/s: 40.96 ns on the processors, without a kernel's latency.
  CHECK(takes(0, 0, 8, 8, 8) == 40'960);
  // A triangle has half of a product's operations, 1000^3, in 100 us.
  CHECK(takes(1, 0, 1000, 1000, 0) == 105'000'000);
  CHECK(takes(2, 0, 50'000, 0, 0) == 1'000'000);
  CHECK(takes(3, 1, 1'000'000, 0, 0) == 1'000'000);
  CHECK(takes(0, 0, 0, 10, 10) == 0);
  CHECK(takes(0, 0, -1, 10, 10) == 0);
  CHECK(takes(9, 0, 10, 10, 10) == 0);
  CHECK(takes(0, 3, 10, 10, 10) == 0);
  const std::uint64_t before = fake_mpi.self->now_ps.load();
  compute(3'000'000);
  MPI_Barrier(0);
  CHECK(fake_mpi.self->now_ps.load() == before);
  header.compute.numerics_skipped = 1;
  CHECK(mode() == 2);
  CHECK(fake_mpi.page->times.announced_work == 6);
  REQUIRE(MPI_Finalize() == 0);
}

TEST_CASE("replay: the recorded computing gives the same clock to the picosecond") {
  begin_computing(ComputeMode::replay);
  compute_and_finalize();
  unsigned long long recorded = 0;
  FILE* file = fopen(clock_file().c_str(), "r");
  REQUIRE(file != nullptr);
  REQUIRE(fscanf(file, "%llu", &recorded) == 1);
  fclose(file);
  CHECK(fake_mpi.self->now_ps.load() == recorded);
  CHECK(fake_mpi.page->times.replay_mismatches == 0);
}

TEST_CASE("unlike: a run that looks less often than the recorded one, or more often, computes as long at each call") {
  begin_computing(ComputeMode::replay);
  const auto now = [] { return fake_mpi.self->now_ps.load(); };
  MPI_Barrier(0);
  MPI_Barrier(0);  // without the reading
  const std::uint64_t first = now();
  CHECK(first > 60'000'000'000);
  MPI_Barrier(0);
  CHECK(now() < first + 5'000'000'000);
  const std::uint64_t second = now();
  for (int look = 0; look < 3; ++look) MPI_Wtime();
  CHECK(now() == second);
  MPI_Barrier(0);
  CHECK(now() > second + 10'000'000'000);
  REQUIRE(MPI_Finalize() == 0);
  unsigned long long recorded = 0;
  FILE* file = fopen(clock_file().c_str(), "r");
  REQUIRE(file != nullptr);
  REQUIRE(fscanf(file, "%llu", &recorded) == 1);
  fclose(file);
  CHECK(now() == recorded);
  CHECK(fake_mpi.page->times.replay_mismatches == 0);
}

TEST_CASE("misfit: a replay that ends before its recording is reported") {
  begin_computing(ComputeMode::replay);
  MPI_Barrier(0);
  REQUIRE(MPI_Finalize() == 0);
  CHECK(fake_mpi.page->times.replay_mismatches == 1);
}

TEST_CASE("overrun: a replay that goes on beyond its recording is counted at each call") {
  begin_computing(ComputeMode::replay);
  // The recording has 5 calls (4 barriers, the end); this program has 8.
  for (int i = 0; i < 7; ++i) MPI_Barrier(0);
  REQUIRE(MPI_Finalize() == 0);
  CHECK(fake_mpi.page->times.replay_mismatches == 3);
}
