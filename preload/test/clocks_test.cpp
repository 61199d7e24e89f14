// Clocks, sleeps and timed waits of a rank. Run with the preload, linked to the fake MPI library.
#include <doctest/doctest.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "preload/test/fake_mpi.hpp"

namespace {

constexpr std::uint64_t read_cost_ps = 25'000;
constexpr std::uint64_t ps_per_ms = 1'000'000'000;
constexpr std::uint64_t epoch_s = 1'735'689'600 + 3600;  // an hour later than the default: it must come from the header

std::uint64_t read_ns(clockid_t clock) {
  timespec now{};
  REQUIRE(clock_gettime(clock, &now) == 0);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t real_ns(clockid_t clock) {
  timespec now{};
  syscall(SYS_clock_gettime, clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t now_ps() { return fake_mpi.self->now_ps.load(); }

// The run, begun once per process.
void begin() {
  if (fake_mpi.self != nullptr) return;
  fake_mpi.header->costs.clock_read_ps = read_cost_ps;
  fake_mpi.header->epoch_ps = epoch_s * 1'000'000;
  REQUIRE(MPI_Init(nullptr, nullptr) == 0);
  REQUIRE(fake_mpi.self != nullptr);
}

// By how much `action` moves the virtual clock, and how long it takes for real.
struct Taken {
  std::uint64_t virtual_ps;
  std::uint64_t real_ns;
};
template <typename Action>
Taken measure(Action action) {
  begin();
  const std::uint64_t real = real_ns(CLOCK_MONOTONIC);
  const std::uint64_t before = now_ps();
  action();
  return {now_ps() - before, real_ns(CLOCK_MONOTONIC) - real};
}

// Ten virtual seconds that pass in less than one real one were not slept through.
constexpr std::uint64_t ten_s_ps = 10'000 * ps_per_ms;
constexpr std::uint64_t one_s_ns = 1'000'000'000;

void real_nap() {
  const timespec nap{0, 30'000'000};
  syscall(SYS_nanosleep, &nap, nullptr);
}

timespec deadline_in(clockid_t clock, long ms) {
  timespec at{};
  clock_gettime(clock, &at);
  at.tv_sec += ms / 1000;
  at.tv_nsec += ms % 1000 * 1'000'000;
  if (at.tv_nsec >= 1'000'000'000) {
    at.tv_nsec -= 1'000'000'000;
    ++at.tv_sec;
  }
  return at;
}

}  // namespace

// First in the file, and the suites are run in processes of their own.
TEST_CASE("before MPI_Init: clocks of a program linked with MPI are virtual from the start") {
  // 1,000,000 s plus 1 ns for each reading so far.
  const std::uint64_t first = read_ns(CLOCK_MONOTONIC);
  CHECK(first > 1'000'000'000'000'000);
  CHECK(first < 1'000'000'000'010'000);
  CHECK(read_ns(CLOCK_MONOTONIC) == first + 1);
  CHECK(time(nullptr) == 1'735'689'600);
  sleep(2);
  CHECK(time(nullptr) == 1'735'689'602);
  CHECK(MPI_Wtime() == doctest::Approx(1002.0).epsilon(1e-9));
}

TEST_CASE("node name: the program sees the simulated node as its host") {
  char name[64];
  REQUIRE(gethostname(name, sizeof name) == 0);
  CHECK(std::string(name) == "nid000007");
  utsname host{};
  REQUIRE(uname(&host) == 0);
  CHECK(std::string(host.nodename) == "nid000007");
  CHECK(std::string(host.sysname) == "Linux");
  errno = 0;
  CHECK(gethostname(name, 4) == -1);
  CHECK(errno == ENAMETOOLONG);
}

TEST_CASE("run: each clock counts from its base and a reading costs what the header says") {
  begin();
  const std::uint64_t before = now_ps();
  const std::uint64_t publishes = fake_mpi.publishes;
  // A reading shows the clock after its own cost.
  CHECK(read_ns(CLOCK_MONOTONIC) == 1'000'000'000'000'000 + (before + read_cost_ps) / 1000);
  CHECK(read_ns(CLOCK_REALTIME) == epoch_s * 1'000'000'000 + (before + 2 * read_cost_ps) / 1000);
  CHECK(read_ns(CLOCK_PROCESS_CPUTIME_ID) == (before + 3 * read_cost_ps) / 1000);
  CHECK(clock() == static_cast<clock_t>((before + 4 * read_cost_ps) / 1'000'000));
  timeval day{};
  gettimeofday(&day, nullptr);
  CHECK(static_cast<std::uint64_t>(day.tv_sec) == epoch_s + (before + 5 * read_cost_ps) / 1'000'000'000'000);
  timespec utc{};
  CHECK(timespec_get(&utc, TIME_UTC) == TIME_UTC);
  CHECK(static_cast<std::uint64_t>(utc.tv_nsec) == (before + 6 * read_cost_ps) / 1000 % 1'000'000'000);
  CHECK(MPI_Wtime() == doctest::Approx(1000.0 + static_cast<double>(before + 7 * read_cost_ps) * 1e-12).epsilon(1e-15));
  rusage usage{};
  CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  CHECK(static_cast<std::uint64_t>(usage.ru_utime.tv_usec) == (before + 8 * read_cost_ps) / 1'000'000 % 1'000'000);
  CHECK(usage.ru_stime.tv_usec == 0);
  tms ticks{};
  CHECK(times(&ticks) == static_cast<clock_t>(100'000'000 + (before + 9 * read_cost_ps) / 10'000'000'000));
  CHECK(ticks.tms_utime == static_cast<clock_t>((before + 9 * read_cost_ps) / 10'000'000'000));
  CHECK(ticks.tms_stime == 0);
  CHECK(now_ps() == before + 9 * read_cost_ps);
  CHECK(fake_mpi.publishes == publishes + 9);
  CHECK(MPI_Wtick() == 1e-12);
}

TEST_CASE("run: std::chrono sees virtual time, the MPI library real time") {
  begin();
  const auto from = std::chrono::steady_clock::now();
  std::this_thread::sleep_for(std::chrono::milliseconds(250));
  const auto to = std::chrono::steady_clock::now();
  CHECK(std::chrono::nanoseconds(to - from).count() == 250'000'000 + 25);  // and one reading
  const std::uint64_t before = now_ps();
  const std::uint64_t inside = fake_mpi.read_monotonic_ns();
  CHECK(now_ps() == before);
  CHECK(real_ns(CLOCK_MONOTONIC) - inside < one_s_ns);
}

TEST_CASE("run: a loop on the clock ends") {
  const Taken taken = measure([] {
    const double end = MPI_Wtime() + 1e-3;
    while (MPI_Wtime() < end) {
    }
  });
  // The loop ends with the first reading at or after 1 ms: 40,000 readings of 25 ns, give or take the rounding of a
  // double.
  CHECK(taken.virtual_ps >= ps_per_ms + read_cost_ps - 1);
  CHECK(taken.virtual_ps <= ps_per_ms + 2 * read_cost_ps);
}

TEST_CASE("run: sleeps move the clock by exactly their length") {
  const timespec ten{10, 0};
  const Taken slept = measure([&] { nanosleep(&ten, nullptr); });
  CHECK(slept.virtual_ps == ten_s_ps);
  CHECK(slept.real_ns < one_s_ns);
  CHECK(measure([] { sleep(10); }).virtual_ps == ten_s_ps);
  CHECK(measure([] { usleep(7); }).virtual_ps == 7'000'000);
  CHECK(measure([&] { clock_nanosleep(CLOCK_MONOTONIC, 0, &ten, nullptr); }).virtual_ps == ten_s_ps);
  const timespec until = deadline_in(CLOCK_REALTIME, 10'000);
  clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, nullptr);
  // The deadline in nanoseconds, shown by a clock that rounds down; the reading adds its own 25 ns.
  CHECK(read_ns(CLOCK_REALTIME) ==
        static_cast<std::uint64_t>(until.tv_sec) * 1'000'000'000U + static_cast<std::uint64_t>(until.tv_nsec) + 25);
  CHECK(measure([&] { clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, nullptr); }).virtual_ps == 0);
}

TEST_CASE("run: time-outs of descriptor waits are virtual") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  pollfd watched{ends[0], POLLIN, 0};
  const timespec ten{10, 0};
  const Taken polled = measure([&] { CHECK(poll(&watched, 1, 10'000) == 0); });
  CHECK(polled.virtual_ps == ten_s_ps);
  CHECK(polled.real_ns < one_s_ns);
  CHECK(measure([&] { CHECK(ppoll(&watched, 1, &ten, nullptr) == 0); }).virtual_ps == ten_s_ps);
  CHECK(measure([&] { CHECK(poll(&watched, 1, 0) == 0); }).virtual_ps == 0);
  fd_set set;
  FD_ZERO(&set);
  FD_SET(ends[0], &set);
  timeval limit{10, 0};
  CHECK(measure([&] { CHECK(select(ends[0] + 1, &set, nullptr, nullptr, &limit) == 0); }).virtual_ps == ten_s_ps);
  CHECK_FALSE(FD_ISSET(ends[0], &set));
  const int epoll = epoll_create1(0);
  epoll_event event{EPOLLIN, {}};
  REQUIRE(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == 0);
  CHECK(measure([&] { CHECK(epoll_wait(epoll, &event, 1, 10'000) == 0); }).virtual_ps == ten_s_ps);
  REQUIRE(write(ends[1], "x", 1) == 1);
  CHECK(measure([&] { CHECK(poll(&watched, 1, 10'000) == 1); }).virtual_ps == 0);
  CHECK(measure([&] { CHECK(epoll_wait(epoll, &event, 1, 10'000) == 1); }).virtual_ps == 0);
  FD_SET(ends[0], &set);
  limit = {10, 0};
  CHECK(measure([&] { CHECK(select(ends[0] + 1, &set, nullptr, nullptr, &limit) == 1); }).virtual_ps == 0);
  CHECK(FD_ISSET(ends[0], &set));
  close(epoll);
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("run: time-outs of waits for signals and locks are virtual") {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  const timespec ten{10, 0};
  CHECK(measure([&] { CHECK(sigtimedwait(&set, nullptr, &ten) == -1); }).virtual_ps == ten_s_ps);
  raise(SIGUSR1);
  CHECK(measure([&] { CHECK(sigtimedwait(&set, nullptr, &ten) == SIGUSR1); }).virtual_ps == 0);

  // Each of these reads the clock once for its deadline; its rounding to nanoseconds may take up to 1 ns away.
  const auto close_to = [](std::uint64_t ps) { return ps <= ten_s_ps + read_cost_ps && ps + 1000 > ten_s_ps; };
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  const Taken semaphored = measure([&] {
    const timespec until = deadline_in(CLOCK_REALTIME, 10'000);
    CHECK(sem_timedwait(&semaphore, &until) == -1);
    CHECK(errno == ETIMEDOUT);
  });
  CHECK(close_to(semaphored.virtual_ps));
  CHECK(semaphored.real_ns < one_s_ns);

  // 2038 is how programs say "for ever": nothing but the helper ends this wait, and the clock stays where it is.
  const Taken endless = measure([&] {
    std::thread helper([&] {
      real_nap();
      sem_post(&semaphore);
    });
    const timespec until{2'147'483'647, 0};
    CHECK(sem_timedwait(&semaphore, &until) == 0);
    helper.join();
  });
  CHECK(endless.virtual_ps == 0);

  for (const clockid_t clock : {CLOCK_REALTIME, CLOCK_MONOTONIC}) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, clock);
    pthread_cond_t condition;
    pthread_cond_init(&condition, &attributes);
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    const Taken waited = measure([&] {
      const timespec until = deadline_in(clock, 10'000);
      CHECK(pthread_cond_timedwait(&condition, &mutex, &until) == ETIMEDOUT);
    });
    CHECK(close_to(waited.virtual_ps));
    CHECK(waited.real_ns < one_s_ns);
    pthread_mutex_unlock(&mutex);
  }
}

TEST_CASE("run: a timed wait leaves a busy helper thread its time") {
  begin();
  std::mutex mutex;
  std::condition_variable done;
  bool is_done = false;
  std::thread helper([&] {
    const std::uint64_t until = real_ns(CLOCK_THREAD_CPUTIME_ID) + 50'000'000;
    while (real_ns(CLOCK_THREAD_CPUTIME_ID) < until) {
    }
    const std::lock_guard lock(mutex);
    is_done = true;
    done.notify_one();
  });
  std::unique_lock lock(mutex);
  const Taken waited = measure([&] { CHECK(done.wait_for(lock, std::chrono::seconds(30), [&] { return is_done; })); });
  lock.unlock();
  helper.join();
  CHECK(waited.virtual_ps < 30'000 * ps_per_ms);
}

TEST_CASE("run: a helper's sleep moves the clock only when everybody waits for it") {
  begin();
  const Taken joined = measure([] { std::thread([] { sleep(10); }).join(); });
  CHECK(joined.virtual_ps == ten_s_ps);
  CHECK(joined.real_ns < one_s_ns);

  // While the main thread computes for 200 ms, a helper that naps 10 ms at a time must not drive the clock.
  std::atomic<bool> stop{false};
  std::thread sampler([&] {
    while (!stop.load()) usleep(10'000);
  });
  const Taken computed = measure([] {
    const std::uint64_t until = real_ns(CLOCK_THREAD_CPUTIME_ID) + 200'000'000;
    while (real_ns(CLOCK_THREAD_CPUTIME_ID) < until) {
    }
  });
  stop.store(true);
  sampler.join();
  CHECK(computed.virtual_ps == 0);
}

TEST_CASE("run: of two waits the one with the earlier deadline ends first, whoever waits") {
  begin();
  std::mutex mutex;
  std::condition_variable done;
  bool is_done = false;
  std::thread sleeper([&] {
    sleep(10);
    const std::lock_guard lock(mutex);
    is_done = true;
    done.notify_one();
  });
  std::unique_lock lock(mutex);
  const auto wait = [&](int ms) { return done.wait_for(lock, std::chrono::milliseconds(ms), [&] { return is_done; }); };
  // The helper sleeps 10 s: three waits of 2 ms end without it, and one of an hour with it.
  const Taken early = measure([&] {
    for (int i = 0; i < 3; ++i) CHECK_FALSE(wait(2));
  });
  const Taken late = measure([&] { CHECK(wait(3'600'000)); });
  lock.unlock();
  sleeper.join();
  CHECK(early.virtual_ps >= 6 * ps_per_ms);
  CHECK(early.virtual_ps < 7 * ps_per_ms);
  CHECK(early.virtual_ps + late.virtual_ps <= ten_s_ps + ps_per_ms);
  CHECK(early.real_ns + late.real_ns < 10 * one_s_ns);
}

// Each time the helper comes at another instant of the main thread's attempts: between two of them, while one that has
// timed out locks the mutex again, or while the main thread, which then holds the mutex, looks whether anybody can run.
TEST_CASE("run: a signal is heard whenever it comes between the attempts of a wait") {
  begin();
  std::mutex mutex;
  std::condition_variable done;
  const Taken waited = measure([&] {
    for (std::uint64_t turn = 0; turn < 400; ++turn) {
      bool is_done = false;
      std::thread helper([&] {
        const std::uint64_t until = real_ns(CLOCK_MONOTONIC) + 150'000 + turn * 1000;
        while (real_ns(CLOCK_MONOTONIC) < until) {
        }
        const std::lock_guard lock(mutex);
        is_done = true;
        done.notify_one();
      });
      std::unique_lock lock(mutex);
      CHECK(done.wait_for(lock, std::chrono::hours(1), [&] { return is_done; }));
      lock.unlock();
      helper.join();
    }
  });
  CHECK(waited.virtual_ps < 1000 * ps_per_ms);
}

TEST_CASE("run: a child after fork has real clocks") {
  begin();
  const pid_t child = fork();
  if (child == 0) {
    const std::uint64_t seen = read_ns(CLOCK_REALTIME);
    _exit(real_ns(CLOCK_REALTIME) - seen < one_s_ns ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("run: MPICH's segment has no name while it is alone on its node, any other segment has") {
  const std::string name = "/mpich_shm_test_" + std::to_string(getpid());
  const auto is_named = [&] { return access(("/dev/shm" + name).c_str(), F_OK) == 0; };
  setenv("MPIR_CVAR_NOLOCAL", "1", 1);
  const int anonymous = fake_mpi.make_segment(name.c_str());
  REQUIRE(anonymous >= 0);
  CHECK_FALSE(is_named());
  CHECK(ftruncate(anonymous, 4096) == 0);
  close(anonymous);

  const int own = shm_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600);  // the program's
  CHECK(own >= 0);
  CHECK(is_named());
  close(own);
  CHECK(shm_unlink(name.c_str()) == 0);

  unsetenv("MPIR_CVAR_NOLOCAL");
  const int shared = fake_mpi.make_segment(name.c_str());
  CHECK(shared >= 0);
  CHECK(is_named());
  close(shared);
  CHECK(shm_unlink(name.c_str()) == 0);
}

TEST_CASE("bystander: without a run every clock is real and nothing is accounted for") {
  const std::uint64_t seen = read_ns(CLOCK_MONOTONIC);
  CHECK(real_ns(CLOCK_MONOTONIC) - seen < one_s_ns);
  CHECK(MPI_Wtime() == 42.0);
  CHECK(MPI_Wtick() == 0.5);
  REQUIRE(MPI_Init(nullptr, nullptr) == 0);
  CHECK(MPI_Send(nullptr, 3, 8, 1, 2, 3) == 0);
  CHECK(fake_mpi.words[1] == 3);
  CHECK(fake_mpi.page->call_count.load() == 0);
  const std::uint64_t from = real_ns(CLOCK_MONOTONIC);
  usleep(20'000);
  CHECK(real_ns(CLOCK_MONOTONIC) - from >= 20'000'000);
  CHECK(MPI_Finalize() == 0);
}
