// Time of one MPI_Alltoall: `alltoall [bytes=4096] [count=1]`, bytes from each rank to each. The slowest rank's time.
#include "micro.h"

int main(int argc, char** argv) {
  micro_begin(&argc, &argv);
  int bytes = argument(argc, argv, "bytes", 4096, 0), count = argument(argc, argv, "count", 1, 1);
  char *send = buffer_of((size_t)bytes * (size_t)rank_count), *receive = buffer_of((size_t)bytes * (size_t)rank_count);
  MPI_Barrier(MPI_COMM_WORLD);
  double seconds = MPI_Wtime();
  for (int i = 0; i < count; ++i) MPI_Alltoall(send, bytes, MPI_CHAR, receive, bytes, MPI_CHAR, MPI_COMM_WORLD);
  seconds = slowest(MPI_Wtime() - seconds) / count;
  if (my_rank == 0) printf("alltoall of %d B on %d ranks: %.3f us\n", bytes, rank_count, seconds * 1e6);
  free(send);
  free(receive);
  MPI_Finalize();
}
