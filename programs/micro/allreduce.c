// Time of one MPI_Allreduce of doubles: `allreduce [bytes=8] [count=100]`. The slowest rank's time.
#include "micro.h"

int main(int argc, char** argv) {
  micro_begin(&argc, &argv);
  int bytes = argument(argc, argv, "bytes", 8, 8), count = argument(argc, argv, "count", 100, 1);
  int elements = bytes / (int)sizeof(double);
  double *send = (double*)buffer_of((size_t)bytes), *receive = (double*)buffer_of((size_t)bytes);
  for (int i = 0; i < elements; ++i) send[i] = my_rank;
  MPI_Barrier(MPI_COMM_WORLD);
  double seconds = MPI_Wtime();
  for (int i = 0; i < count; ++i) MPI_Allreduce(send, receive, elements, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  seconds = slowest(MPI_Wtime() - seconds) / count;
  if (receive[elements - 1] != rank_count * (rank_count - 1) / 2.0) micro_fail("the sum is wrong");
  if (my_rank == 0)
    printf("allreduce of %zu B on %d ranks: %.3f us\n", (size_t)elements * sizeof(double), rank_count, seconds * 1e6);
  free(send);
  free(receive);
  MPI_Finalize();
}
