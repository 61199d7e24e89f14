// One thread exchanges messages with that of the partner while the main thread does something else: `beside WAY LEVEL`.
// They take the time that they take while the main thread does nothing.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { exchanges = 20 };

static atomic_bool done;
static double took;

static void exchange(void) {
  int value = my_rank;
  for (int turn = 0; turn < 2; ++turn) {
    if ((my_rank + turn) % 2 == 0)
      MPI_Send(&value, 1, MPI_INT, partner_rank(), 1, MPI_COMM_WORLD);
    else
      MPI_Recv(&value, 1, MPI_INT, partner_rank(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

static void* talk(void* unused) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double began = MPI_Wtime();
  for (int i = 0; i < exchanges; ++i) exchange();
  took = MPI_Wtime() - began;
  atomic_store(&done, true);
  return unused;
}

static void do_nothing(void) {}
static void sleep_shortly(void) { usleep(300); }
static void sleep_long(void) { usleep(200000); }
static void sleep_hardly(void) { usleep(1); }
static void* sleep_for_ever(void* unused) {
  sleep(1000);
  return unused;
}
static void cancel_a_sleeper(void) {
  pthread_t sleeper;
  REQUIRE(pthread_create(&sleeper, NULL, sleep_for_ever, NULL) == 0, "no thread");
  usleep(20);
  pthread_cancel(sleeper);
  pthread_join(sleeper, NULL);
}
static void read_clock(void) { MPI_Wtime(); }
static void compute(void) {
  volatile double x = 1;
  for (int i = 0; i < 100000; ++i) x = x * 1.0000001;
  MPI_Wtime();
}
static void wait_in_vain(void) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += 300000;
  if (until.tv_nsec >= 1000000000) ++until.tv_sec, until.tv_nsec -= 1000000000;
  pthread_mutex_lock(&mutex);
  pthread_cond_timedwait(&condition, &mutex, &until);
  pthread_mutex_unlock(&mutex);
}

static const struct {
  const char* name;
  void (*act)(void);
} ways[] = {
    {"short_sleeps", sleep_shortly},
    {"long_sleeps", sleep_long},
    {"readings", read_clock},
    {"tiny_sleeps", sleep_hardly},
    {"cancelled_sleeps", cancel_a_sleeper},
    {"computing", compute},
    {"timed_waits", wait_in_vain},
};

// How long the exchanges take beside a main thread that does so again and again.
static double time_beside(void (*act)(void)) {
  pthread_t thread;
  atomic_store(&done, false);
  REQUIRE(pthread_create(&thread, NULL, talk, NULL) == 0, "no thread");
  while (act != do_nothing && !atomic_load(&done)) act();
  pthread_join(thread, NULL);
  return took;
}

int main(int argc, char** argv) {
  REQUIRE(argc == 3, "beside WAY LEVEL");
  int provided = 0;
  MPI_Init_thread(&argc, &argv, strcmp(argv[2], "serialized") == 0 ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE,
                  &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
  void (*act)(void) = NULL;
  for (size_t i = 0; i < sizeof ways / sizeof *ways; ++i) {
    if (strcmp(argv[1], ways[i].name) == 0) act = ways[i].act;
  }
  REQUIRE(act != NULL, "there is no way named '%s'", argv[1]);
  const double alone = time_beside(do_nothing);
  const double beside = time_beside(act);
  if (my_rank == 0) printf("%d exchanges: %.3f us alone, %.3f us beside\n", exchanges, alone * 1e6, beside * 1e6);
  // At the beginning the main thread may do what it does once before the other one is known.
  REQUIRE(beside < 2 * alone + 600e-6, "%d exchanges took %.3f us, and %.3f us beside %s", exchanges, alone * 1e6,
          beside * 1e6, argv[1]);
  return check_end("beside");
}
