// Of the ranks of each of two nodes the first half exchange with one another, in pairs, and the others with those of
// the other node, all at once: BYTES ROUNDS. Prints how many bytes each kind has moved on a node (read and written, or
// out and in), and in how many seconds.
#include "check.h"

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  REQUIRE(argc == 3, "wanted are BYTES ROUNDS");
  REQUIRE(rank_count % 8 == 0, "wanted are ranks by the eight, %d are there", rank_count);
  const int bytes = atoi(argv[1]), rounds = atoi(argv[2]);
  const int on_node = rank_count / 2, half = on_node / 2;
  const int leaves = my_rank % on_node >= half;
  const int peer = leaves ? (my_rank + on_node) % rank_count : my_rank ^ 1;
  char* out = malloc((size_t)bytes);
  char* in = malloc((size_t)bytes);
  memset(out, my_rank + 1, (size_t)bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  const double started = MPI_Wtime();
  for (int round = 0; round < rounds; ++round) {
    MPI_Request requests[2];
    MPI_Irecv(in, bytes, MPI_BYTE, peer, round, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, bytes, MPI_BYTE, peer, round, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  }
  double own[2] = {0, 0}, most[2];
  own[leaves] = MPI_Wtime() - started;
  for (int at = 0; at < bytes; ++at) REQUIRE_EQUAL(in[at], (char)(peer + 1), "a byte");
  MPI_Reduce(own, most, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  const double moved = 2.0 * bytes * rounds * half;
  if (my_rank == 0) printf("%.0f %.9f\n%.0f %.9f\n", moved, most[0], moved, most[1]);
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
