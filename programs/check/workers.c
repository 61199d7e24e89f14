// What another thread computes takes as long as if the main thread did, when that waits for it: `workers WAY LEVEL`.
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static bool is_done;
static sem_t semaphore, answered;
static pthread_barrier_t barrier;

static void compute(void) {
  volatile double x = 1;
  for (int i = 0; i < 20000000; ++i) x = x * 1.0000001;
}

static void* work(void* unused) {
  compute();
  return unused;
}
static void* work_and_signal(void* unused) {
  compute();
  pthread_mutex_lock(&mutex);
  is_done = true;
  pthread_cond_signal(&condition);
  pthread_mutex_unlock(&mutex);
  return unused;
}
static void* work_and_post(void* unused) {
  compute();
  sem_post(&semaphore);
  return unused;
}
static void* work_and_meet(void* unused) {
  compute();
  pthread_barrier_wait(&barrier);
  return unused;
}
static void* work_by_calls(void* unused) {
  compute();
  MPI_Barrier(MPI_COMM_SELF);
  return unused;
}
// As long as the main thread computes at the same time.
static void* work_beside(void* unused) {
  compute();
  return unused;
}
// Twice, each time when it is told to, behind what the main thread has computed.
static void* work_in_turn(void* unused) {
  for (int turn = 0; turn < 2; ++turn) {
    sem_wait(&semaphore);
    compute();
    sem_post(&answered);
  }
  return unused;
}
// As long as half a second of its own processor time.
static void* work_by_clock(void* unused) {
  struct timespec now = {0};
  do
    for (volatile int i = 0; i < 100000;) i = i + 1;
  while (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0 && MPI_Wtime() < *(double*)unused + 0.5);
  return unused;
}

static void* (*const works[])(void*) = {work,          work_and_signal, work_and_post, work_and_meet,
                                        work_by_calls, work_by_clock,   work_beside,   work_in_turn};
static const char* const ways[] = {"join", "condition", "semaphore", "barrier", "calls", "clock", "beside", "turns"};

static int way_of(const char* name) {
  for (int way = 0; way < (int)(sizeof ways / sizeof *ways); ++way)
    if (strcmp(ways[way], name) == 0) return way;
  return -1;
}

int main(int argc, char** argv) {
  int provided;
  const bool multiple = argc > 2 && strcmp(argv[2], "multiple") == 0;
  MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  const int way = argc > 1 ? way_of(argv[1]) : -1;
  REQUIRE(way >= 0, "workers WAY LEVEL");
  sem_init(&semaphore, 0, 0);
  sem_init(&answered, 0, 0);
  pthread_barrier_init(&barrier, NULL, 2);
  double began = MPI_Wtime();
  compute();
  const double once = MPI_Wtime() - began;
  const double alone = way == 5 ? 0.5 : way == 7 ? 4 * once : once;
  began = MPI_Wtime();
  pthread_t worker;
  REQUIRE(pthread_create(&worker, NULL, works[way], &began) == 0, "no thread");
  if (way == 1) {
    pthread_mutex_lock(&mutex);
    while (!is_done) pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
  } else if (way == 2) {
    sem_wait(&semaphore);
  } else if (way == 3) {
    pthread_barrier_wait(&barrier);
  } else if (way == 6) {
    compute();
  } else if (way == 7) {
    for (int turn = 0; turn < 2; ++turn) {
      compute();
      sem_post(&semaphore);
      sem_wait(&answered);
    }
  }
  if (way != 2) pthread_join(worker, NULL);
  const double together = MPI_Wtime() - began;
  if (way == 2) pthread_join(worker, NULL);
  REQUIRE(together > 0.7 * alone && together < 1.5 * alone, "%s: %g s, alone %g s", ways[way], together, alone);
  if (my_rank == 0) printf("ok workers\n");
  MPI_Finalize();
  return 0;
}
