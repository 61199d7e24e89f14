// The clocks and waits of the C++ library agree with MPI's: std::chrono, sleep_for, sleep_until, condition variables
// and futures. Argument: seconds of each wait (1 unless told).
#include <mpi.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

namespace {

using Seconds = std::chrono::duration<double>;

template <typename Clock>
double now() {
  return Seconds(Clock::now().time_since_epoch()).count();
}

struct Readings {
  double mpi = MPI_Wtime();
  double steady = now<std::chrono::steady_clock>();
  double system = now<std::chrono::system_clock>();
};

void require_moved(const char* wait, const char* clock, double moved, double asked) {
  if (moved > asked - 2e-3 && moved < asked + 0.05) return;
  std::fprintf(stderr, "%s of %g s moved %s by %.6f s\n", wait, asked, clock, moved);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

void check(const char* name, double asked, const std::function<void(Seconds)>& wait) {
  const Readings before;
  wait(Seconds(asked));
  const Readings after;
  require_moved(name, "MPI_Wtime", after.mpi - before.mpi, asked);
  require_moved(name, "steady_clock", after.steady - before.steady, asked);
  require_moved(name, "system_clock", after.system - before.system, asked);
}

void wait_for_nobody(Seconds time) {
  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock lock(mutex);
  condition.wait_for(lock, time, [] { return false; });
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1.0;
  check("sleep_for", seconds, [](Seconds time) { std::this_thread::sleep_for(time); });
  check("sleep_until", seconds, [](Seconds time) {
    std::this_thread::sleep_until(std::chrono::steady_clock::now() +
                                  std::chrono::duration_cast<std::chrono::nanoseconds>(time));
  });
  check("condition_variable::wait_for", seconds, wait_for_nobody);
  check("future::wait_for", seconds, [](Seconds time) {
    std::promise<void> never;
    never.get_future().wait_for(time);
  });
  MPI_Barrier(MPI_COMM_WORLD);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::puts("ok clocks_cpp");
  MPI_Finalize();
}
