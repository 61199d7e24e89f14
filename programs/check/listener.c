// A thread of each rank waits in MPI_Recv while the main thread, or with an argument another one, computes for 0.2 s of
// processor time and then sends what it waits for. The system call itself is made, because the C library's clocks are
// virtual.
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static void* listen(void* got) {
  MPI_Recv(got, 1, MPI_INT, left_rank(), 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return NULL;
}

static double processor_time(void) {
  struct timespec at;
  syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &at);
  return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static void* compute_and_send(void* unused) {
  const double begin = processor_time();
  while (processor_time() < begin + 0.2) {
  }
  MPI_Send(&my_rank, 1, MPI_INT, right_rank(), 5, MPI_COMM_WORLD);
  return unused;
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
  REQUIRE_EQUAL(provided, MPI_THREAD_MULTIPLE, "the level of threads");
  pthread_t thread;
  int got = -1;
  REQUIRE(pthread_create(&thread, NULL, listen, &got) == 0, "no thread");
  if (argc > 1) {
    pthread_t computing;
    REQUIRE(pthread_create(&computing, NULL, compute_and_send, NULL) == 0, "no thread");
    pthread_join(computing, NULL);
  } else {
    compute_and_send(NULL);
  }
  pthread_join(thread, NULL);
  REQUIRE_EQUAL(got, left_rank(), "the message");
  return check_end("listener");
}
