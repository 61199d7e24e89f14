// Threads that each add to a counter of the next rank and sum over a communicator of their own, all at once.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { threads = 4, rounds = 20 };
static MPI_Win window;
static MPI_Comm communicators[threads];
static int rank, size;

static void* run(void* argument) {
  const long self = (long)argument;
  const int next = (rank + 1) % size;
  for (int round = 0; round < rounds; ++round) {
    long one = 1, before;
    int sum;
    MPI_Fetch_and_op(&one, &before, MPI_LONG, next, self, MPI_SUM, window);
    MPI_Win_flush(next, window);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, communicators[self]);
    if (before != round || sum != size * (size - 1) / 2) printf("rank %d: %ld and %d\n", rank, before, sum);
  }
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  long* counters;
  pthread_t started[threads];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Win_allocate(threads * sizeof *counters, sizeof *counters, MPI_INFO_NULL, MPI_COMM_WORLD, &counters, &window);
  for (long i = 0; i < threads; ++i) {
    counters[i] = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &communicators[i]);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, window);
  for (long i = 0; i < threads; ++i) pthread_create(&started[i], NULL, run, (void*)i);
  for (int i = 0; i < threads; ++i) pthread_join(started[i], NULL);
  MPI_Win_unlock_all(window);
  for (int i = 0; i < threads; ++i) MPI_Comm_free(&communicators[i]);
  MPI_Win_free(&window);
  if (rank == 0) printf("ok\n");
  MPI_Finalize();
  return 0;
}
