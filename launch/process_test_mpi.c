// For process_test.py: what MPICH makes of the job dryfly-launch describes. Prints rank, size and the ranks on its
// node; with an argument, rank 2 calls MPI_Abort with that code while the others wait in a barrier.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  int rank, size, local_rank, local_size, sum;
  MPI_Comm node;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &local_rank);
  MPI_Comm_size(node, &local_size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  printf("%d/%d %d/%d %d\n", rank, size, local_rank, local_size, sum);
  fflush(stdout);
  if (argc > 1 && rank == 2) MPI_Abort(MPI_COMM_WORLD, atoi(argv[1]));
  if (argc > 1) MPI_Barrier(MPI_COMM_WORLD);
  MPI_Comm_free(&node);
  MPI_Finalize();
  return 0;
}
