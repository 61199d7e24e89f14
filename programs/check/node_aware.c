/* Ranks of a node find each other, share a window and mix traffic on and off the node; every result is checked. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;
#define CHECK(condition)                                                                                          \
  do {                                                                                                            \
    if (!(condition)) failures++, fprintf(stderr, "rank %d: line %d: %s is false\n", rank, __LINE__, #condition); \
  } while (0)

static int rank, ranks, local, locals;
static MPI_Comm node;

/* Each local rank writes its part of the window; after the barrier everyone reads all of it. */
static void share_a_window(int elements) {
  int *mine, round;
  MPI_Win window;
  MPI_Win_allocate_shared(elements * (MPI_Aint)sizeof(int), sizeof(int), MPI_INFO_NULL, node, &mine, &window);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
  for (round = 0; round < 3; ++round) {
    for (int i = 0; i < elements; ++i) mine[i] = round * 1000000 + local * 1000 + i;
    MPI_Win_sync(window);
    MPI_Barrier(node);
    MPI_Win_sync(window);
    for (int other = 0; other < locals; ++other) {
      MPI_Aint bytes;
      int unit, *theirs;
      MPI_Win_shared_query(window, other, &bytes, &unit, &theirs);
      for (int i = 0; i < elements; ++i) CHECK(theirs[i] == round * 1000000 + other * 1000 + i);
    }
    MPI_Barrier(node);
  }
  MPI_Win_unlock_all(window);
  long one = 1, before = -1;
  long* counter;
  MPI_Win counters;
  MPI_Win_allocate_shared(local == 0 ? sizeof(long) : 0, sizeof(long), MPI_INFO_NULL, node, &counter, &counters);
  if (local == 0) *counter = 0;
  MPI_Barrier(node);
  MPI_Win_lock_all(0, counters);
  for (int i = 0; i < 5; ++i) {
    MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, counters);
    MPI_Win_flush(0, counters);
  }
  MPI_Win_unlock_all(counters);
  MPI_Barrier(node);
  if (local == 0) CHECK(*counter == 5L * locals);
  /* Who came when is part of what has to repeat. */
  if (getenv("NODE_AWARE_PRINT")) printf("rank %d got %ld\n", rank, before);
  MPI_Win_free(&counters);
  MPI_Win_free(&window);
}

static void collectives(MPI_Comm communicator, int elements) {
  int me, size;
  MPI_Comm_rank(communicator, &me);
  MPI_Comm_size(communicator, &size);
  double* in = malloc((size_t)elements * sizeof(double));
  double* out = malloc((size_t)elements * (size_t)size * sizeof(double));
  for (int round = 0; round < 8; ++round) {
    for (int i = 0; i < elements; ++i) in[i] = me + i + round;
    MPI_Allreduce(in, out, elements, MPI_DOUBLE, MPI_SUM, communicator);
    for (int i = 0; i < elements; ++i) CHECK(out[i] == (double)size * (i + round) + size * (size - 1) / 2);
    if (me == round % size)
      for (int i = 0; i < elements; ++i) in[i] = 7 * i + round;
    MPI_Bcast(in, elements, MPI_DOUBLE, round % size, communicator);
    for (int i = 0; i < elements; ++i) CHECK(in[i] == 7 * i + round);
    MPI_Reduce(in, out, elements, MPI_DOUBLE, MPI_MAX, round % size, communicator);
    if (me == round % size) CHECK(out[elements - 1] == 7 * (elements - 1) + round);
    in[0] = me;
    MPI_Allgather(in, 1, MPI_DOUBLE, out, 1, MPI_DOUBLE, communicator);
    for (int i = 0; i < size; ++i) CHECK(out[i] == i);
    MPI_Barrier(communicator);
  }
  free(in);
  free(out);
}

/* Everyone exchanges with everyone, wherever it is, in sizes from eager cells to copies between processes. */
static void exchange(int bytes) {
  const size_t size = (size_t)bytes;
  char* out = malloc(size);
  char* in = malloc(size * (size_t)ranks);
  MPI_Request* requests = malloc(2 * (size_t)ranks * sizeof(MPI_Request));
  memset(out, rank + 1, size);
  for (int other = 0; other < ranks; ++other)
    MPI_Irecv(in + size * (size_t)other, bytes, MPI_CHAR, other, 5, MPI_COMM_WORLD, &requests[other]);
  for (int i = 0; i < ranks; ++i) {
    const int other = (rank + i) % ranks;
    MPI_Isend(out, bytes, MPI_CHAR, other, 5, MPI_COMM_WORLD, &requests[ranks + i]);
  }
  MPI_Waitall(2 * ranks, requests, MPI_STATUSES_IGNORE);
  for (int other = 0; other < ranks; ++other) {
    const char* from = in + size * (size_t)other;
    CHECK(from[0] == (char)(other + 1) && from[size - 1] == (char)(other + 1));
  }
  int sum = 0;
  for (int i = 1; i < ranks; ++i) {
    int value = rank, got;
    MPI_Sendrecv(&value, 1, MPI_INT, (rank + i) % ranks, 6, &got, 1, MPI_INT, MPI_ANY_SOURCE, 6, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    sum += got;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  CHECK(sum == ranks * (ranks - 1) / 2 - rank);
  free(out);
  free(in);
  free(requests);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &local);
  MPI_Comm_size(node, &locals);
  if (argc > 1) CHECK(locals == atoi(argv[1]));
  share_a_window(1000);
  collectives(node, 1);
  collectives(node, 3000);
  collectives(MPI_COMM_WORLD, 1);
  collectives(MPI_COMM_WORLD, 3000);
  exchange(8);
  exchange(20000);
  exchange(300000);
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("node size %d, failures %d, time %.9f\n", locals, all, MPI_Wtime());
  MPI_Finalize();
  return all != 0;
}
