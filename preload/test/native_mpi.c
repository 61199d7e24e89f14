/* A small MPI program whose output does not depend on time; run natively with and without the preload. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  double mine = rank + 1, sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  int from_left = -1;
  MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 7, &from_left, 1, MPI_INT, (rank + size - 1) % size, 7,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  /* Real time: 20 ms are slept, and all clocks say so. */
  struct timespec nap = {0, 20000000};
  double before = MPI_Wtime();
  nanosleep(&nap, NULL);
  int slept = MPI_Wtime() - before >= 0.02;
  if (rank == 0) printf("sum %g of %d, left %d, slept %d\n", sum, size, from_left, slept);
  MPI_Finalize();
  return 0;
}
