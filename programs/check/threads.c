// MPI_THREAD_MULTIPLE: four threads of each rank exchange at once, on communicators of their own and on a shared one
// with tags of their own, while collectives run on the first.
#include <pthread.h>

#include "check.h"

enum { thread_count = 4, rounds = 60 };
static const int sizes[] = {4, 200, 5000, 50000};

static MPI_Comm own_comms[thread_count], shared_comm;

static void exchange(MPI_Comm comm, int tag, int round, int thread, int* outgoing, int* incoming) {
  int count = sizes[(round + thread) % 4], left = left_rank();
  MPI_Request requests[2];
  for (int i = 0; i < count; ++i) outgoing[i] = my_rank * 7919 + thread * 104729 + round * 31 + i;
  MPI_Irecv(incoming, count, MPI_INT, left, tag, comm, &requests[0]);
  MPI_Isend(outgoing, count, MPI_INT, right_rank(), tag, comm, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < count; ++i)
    REQUIRE(incoming[i] == left * 7919 + thread * 104729 + round * 31 + i,
            "thread %d, round %d: element %d of %d is wrong", thread, round, i, count);
}

static void* run_thread(void* argument) {
  int thread = (int)(intptr_t)argument;
  int *outgoing = allocate(50000 * sizeof(int)), *incoming = allocate(50000 * sizeof(int));
  for (int round = 0; round < rounds; ++round) {
    exchange(own_comms[thread], 0, round, thread, outgoing, incoming);
    exchange(shared_comm, thread, round, thread, outgoing, incoming);
    if (round % 10) continue;
    int64_t mine = my_rank + thread, sum;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, own_comms[thread]);
    REQUIRE_EQUAL(sum, rank_count * (rank_count - 1) / 2 + rank_count * thread, "the sum of one thread of each rank");
  }
  free(outgoing);
  free(incoming);
  return NULL;
}

int main(int argc, char** argv) {
  int provided;
  pthread_t threads[thread_count];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
  REQUIRE_EQUAL(provided, MPI_THREAD_MULTIPLE, "the thread level provided");
  for (int t = 0; t < thread_count; ++t) MPI_Comm_dup(MPI_COMM_WORLD, &own_comms[t]);
  MPI_Comm_dup(MPI_COMM_WORLD, &shared_comm);
  for (intptr_t t = 0; t < thread_count; ++t) pthread_create(&threads[t], NULL, run_thread, (void*)t);
  for (int t = 0; t < thread_count; ++t) pthread_join(threads[t], NULL);
  for (int t = 0; t < thread_count; ++t) MPI_Comm_free(&own_comms[t]);
  MPI_Comm_free(&shared_comm);
  return check_end("threads");
}
