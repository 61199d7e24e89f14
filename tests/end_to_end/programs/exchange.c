/* Rank 0 and the last rank exchange 100 messages of 8 bytes; then all ranks sum their numbers. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double value = 1.5;
  const double start = MPI_Wtime();
  for (int round = 0; round < 100; ++round) {
    if (rank == 0) {
      MPI_Send(&value, 1, MPI_DOUBLE, size - 1, 0, MPI_COMM_WORLD);
      MPI_Recv(&value, 1, MPI_DOUBLE, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == size - 1) {
      MPI_Recv(&value, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(&value, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    }
  }
  const double end = MPI_Wtime();
  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("one_way_us %.4f sum %d\n", (end - start) * 1e6 / 200, sum);
  MPI_Finalize();
  return 0;
}
