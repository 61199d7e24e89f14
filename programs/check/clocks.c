// Every clock a C program reads agrees with every other, and every way to wait moves all of them by the time asked:
// under dryfly both are virtual, so this takes far less wall time than the seconds it sleeps. Argument: how many
// seconds each wait takes (1 unless told).
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { clock_total = 6 };
static const char* const clock_names[clock_total] = {"MPI_Wtime",      "CLOCK_MONOTONIC", "CLOCK_REALTIME",
                                                     "CLOCK_BOOTTIME", "gettimeofday",    "CLOCK_MONOTONIC_RAW"};

static double clock_seconds(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void read_clocks(double seconds[clock_total]) {
  struct timeval day;
  gettimeofday(&day, NULL);
  seconds[0] = MPI_Wtime();
  seconds[1] = clock_seconds(CLOCK_MONOTONIC);
  seconds[2] = clock_seconds(CLOCK_REALTIME);
  seconds[3] = clock_seconds(CLOCK_BOOTTIME);
  seconds[4] = (double)day.tv_sec + (double)day.tv_usec * 1e-6;
  seconds[5] = clock_seconds(CLOCK_MONOTONIC_RAW);
}

static struct timespec timespec_of(double seconds) {
  struct timespec t = {.tv_sec = (time_t)seconds};
  t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
  return t;
}

static void by_nanosleep(double s) {
  struct timespec t = timespec_of(s);
  REQUIRE_EQUAL(nanosleep(&t, NULL), 0, "nanosleep");
}

static void by_clock_nanosleep_until(double s) {
  struct timespec t = timespec_of(clock_seconds(CLOCK_MONOTONIC) + s);
  REQUIRE_EQUAL(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL), 0, "clock_nanosleep");
}

static void by_usleep(double s) { REQUIRE_EQUAL(usleep((useconds_t)(s * 1e6)), 0, "usleep"); }

static void by_sleep(double s) {
  sleep((unsigned)s);
  by_usleep(s - (unsigned)s);
}

static void by_poll(double s) {
  int ends[2];
  REQUIRE_EQUAL(pipe(ends), 0, "pipe");
  struct pollfd nothing = {.fd = ends[0], .events = POLLIN};
  REQUIRE_EQUAL(poll(&nothing, 1, (int)(s * 1e3)), 0, "poll on an empty pipe");
  REQUIRE_EQUAL(write(ends[1], "x", 1), 1, "write");
  REQUIRE_EQUAL(poll(&nothing, 1, 1000000), 1, "poll on a pipe with a byte");
  close(ends[0]);
  close(ends[1]);
}

static void by_select(double s) {
  struct timeval t = {.tv_sec = (time_t)s, .tv_usec = (suseconds_t)((s - (double)(time_t)s) * 1e6)};
  REQUIRE_EQUAL(select(0, NULL, NULL, NULL, &t), 0, "select");
}

static void by_epoll_wait(double s) {
  struct epoll_event event;
  int epoll = epoll_create1(0);
  REQUIRE_EQUAL(epoll_wait(epoll, &event, 1, (int)(s * 1e3)), 0, "epoll_wait");
  close(epoll);
}

static void by_condition(double s) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  struct timespec until = timespec_of(clock_seconds(CLOCK_REALTIME) + s);
  pthread_mutex_lock(&mutex);
  REQUIRE_EQUAL(pthread_cond_timedwait(&condition, &mutex, &until), ETIMEDOUT, "pthread_cond_timedwait");
  pthread_mutex_unlock(&mutex);
}

static void by_semaphore(double s) {
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  struct timespec until = timespec_of(clock_seconds(CLOCK_REALTIME) + s);
  REQUIRE_EQUAL(sem_timedwait(&semaphore, &until), -1, "sem_timedwait");
  REQUIRE_EQUAL(errno, ETIMEDOUT, "errno after sem_timedwait");
  sem_destroy(&semaphore);
}

static void by_spinning(double s) {
  double end = MPI_Wtime() + s / 1000;  // each reading may cost 20 ns only: a thousandth of the time is enough
  while (MPI_Wtime() < end) {
  }
}

// All clocks advanced by `seconds`, at most 50 ms more (natively the box may be busy), and by the same to 5 ms.
static void wait_moves_all_clocks(const char* name, void (*wait)(double), double asked, double seconds) {
  double before[clock_total], after[clock_total];
  read_clocks(before);
  wait(asked);
  read_clocks(after);
  for (int c = 0; c < clock_total; ++c) {
    double moved = after[c] - before[c];
    REQUIRE(moved > seconds - 2e-3 && moved < seconds + 0.05, "%s of %g s moved %s by %.6f s", name, seconds,
            clock_names[c], moved);
    REQUIRE(moved - (after[0] - before[0]) < 5e-3 && moved - (after[0] - before[0]) > -5e-3,
            "after %s, %s has moved by %.6f s and MPI_Wtime by %.6f s", name, clock_names[c], moved,
            after[0] - before[0]);
  }
}

static void clocks_never_go_back(void) {
  double last[clock_total], now[clock_total];
  read_clocks(last);
  for (int i = 0; i < 1000; ++i) {
    read_clocks(now);
    for (int c = 0; c < clock_total; ++c) REQUIRE(now[c] >= last[c], "%s went back", clock_names[c]);
    memcpy(last, now, sizeof now);
  }
}

// One rank's sleep is everybody's: the others wait for it in a barrier. No message arrives before it was sent.
static void ranks_share_time(double seconds) {
  MPI_Barrier(MPI_COMM_WORLD);
  double before = MPI_Wtime();
  if (my_rank == 0) by_nanosleep(seconds);
  MPI_Barrier(MPI_COMM_WORLD);
  double moved = MPI_Wtime() - before;
  REQUIRE(moved > seconds - 0.01 && moved < seconds + 0.05, "rank 0 slept %g s, and here passed %.6f s", seconds,
          moved);
  double sent = MPI_Wtime(), sent_by_left;
  MPI_Sendrecv(&sent, 1, MPI_DOUBLE, right_rank(), 0, &sent_by_left, 1, MPI_DOUBLE, left_rank(), 0, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  REQUIRE(MPI_Wtime() >= sent_by_left, "a message arrived %g s before it was sent", sent_by_left - MPI_Wtime());
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  double seconds = argc > 1 ? atof(argv[1]) : 1.0;
  clocks_never_go_back();
  wait_moves_all_clocks("nanosleep", by_nanosleep, seconds, seconds);
  wait_moves_all_clocks("clock_nanosleep", by_clock_nanosleep_until, seconds, seconds);
  wait_moves_all_clocks("usleep", by_usleep, seconds, seconds);
  wait_moves_all_clocks("sleep", by_sleep, seconds, seconds);
  wait_moves_all_clocks("poll", by_poll, seconds, seconds);
  wait_moves_all_clocks("select", by_select, seconds, seconds);
  wait_moves_all_clocks("epoll_wait", by_epoll_wait, seconds, seconds);
  wait_moves_all_clocks("pthread_cond_timedwait", by_condition, seconds, seconds);
  wait_moves_all_clocks("sem_timedwait", by_semaphore, seconds, seconds);
  wait_moves_all_clocks("spinning on MPI_Wtime", by_spinning, seconds, seconds / 1000);
  ranks_share_time(seconds);
  return check_end("clocks");
}
