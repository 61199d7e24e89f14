// An allreduce of the even ranks beside a storm of the odd ones, on the same nodes: each odd rank keeps large messages
// to the odd rank half the job away under way. Prints the mean time of an allreduce.
#include "check.h"

enum { allreduces = 15, storm_bytes = 256 << 10, in_flight = 4, rounds = 8 };

static double reduce_all(MPI_Comm over) {
  int size;
  MPI_Comm_size(over, &size);
  const double begin = MPI_Wtime();
  for (int i = 0; i < allreduces; ++i) {
    int64_t sum = 0, expected = 0;
    const int64_t own = value_of(my_rank / 2, i);
    MPI_Allreduce(&own, &sum, 1, MPI_INT64_T, MPI_SUM, over);
    for (int rank = 0; rank < size; ++rank) expected += value_of(rank, i);
    REQUIRE_EQUAL(sum, expected, "the sum");
  }
  return (MPI_Wtime() - begin) / allreduces;
}

static void storm(MPI_Comm over) {
  int rank, size;
  MPI_Comm_rank(over, &rank);
  MPI_Comm_size(over, &size);
  const int partner = (rank + size / 2) % size;
  char* sent = allocate(storm_bytes);
  char* received[in_flight];
  MPI_Request requests[2 * in_flight];
  fill_bytes(sent, storm_bytes, rank);
  for (int i = 0; i < in_flight; ++i) received[i] = allocate(storm_bytes);
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < in_flight; ++i) {
      MPI_Irecv(received[i], storm_bytes, MPI_BYTE, partner, i, over, &requests[2 * i]);
      MPI_Isend(sent, storm_bytes, MPI_BYTE, partner, i, over, &requests[2 * i + 1]);
    }
    MPI_Waitall(2 * in_flight, requests, MPI_STATUSES_IGNORE);
  }
  for (int i = 0; i < in_flight; ++i) require_bytes(received[i], storm_bytes, partner, "the storm");
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  MPI_Comm half;
  MPI_Comm_split(MPI_COMM_WORLD, my_rank % 2, my_rank, &half);
  MPI_Barrier(MPI_COMM_WORLD);
  if (my_rank % 2 == 1) {
    storm(half);
  } else {
    const double each = reduce_all(half);
    if (my_rank == 0) printf("allreduce %.3f us\n", each * 1e6);
  }
  return check_end("classes");
}
