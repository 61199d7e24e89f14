// Round trips between two ranks, all others idle in a barrier: `pingpong [bytes=8] [count=10000] [a=0] [b=LAST]`.
// Prints half of the mean round trip.
#include "micro.h"

int main(int argc, char** argv) {
  micro_begin(&argc, &argv);
  int bytes = argument(argc, argv, "bytes", 8, 0), count = argument(argc, argv, "count", 10000, 1);
  int a = argument(argc, argv, "a", 0, 0), b = argument(argc, argv, "b", rank_count - 1, 0);
  if (a >= rank_count || b >= rank_count || a == b) micro_fail("a and b must be two different ranks of this run");
  char* buffer = buffer_of((size_t)bytes);
  double seconds = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (my_rank == a || my_rank == b) {
    int peer = my_rank == a ? b : a;
    for (int i = -10; i < count; ++i) {  // ten round trips to warm up
      if (i == 0) seconds = MPI_Wtime();
      if (my_rank == a) MPI_Send(buffer, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
      MPI_Recv(buffer, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (my_rank == b) MPI_Send(buffer, bytes, MPI_CHAR, peer, 0, MPI_COMM_WORLD);
    }
    seconds = MPI_Wtime() - seconds;
  }
  seconds = slowest(my_rank == a ? seconds : 0);
  if (my_rank == 0)
    printf("pingpong of %d B between ranks %d and %d: %d round trips, latency %.3f us\n", bytes, a, b, count,
           seconds / count / 2 * 1e6);
  free(buffer);
  MPI_Finalize();
}
