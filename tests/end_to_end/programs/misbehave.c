/* misbehave HOW: rank 1 dies, leaves, aborts, comes to its end or never answers after all ranks have met once. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Barrier(MPI_COMM_WORLD);
  const char* how = argv[1];
  if (rank == 1) {
    if (strcmp(how, "segv") == 0) raise(SIGSEGV);
    if (strcmp(how, "exit") == 0) _Exit(7);
    if (strcmp(how, "abort") == 0) MPI_Abort(MPI_COMM_WORLD, 42);
    if (strcmp(how, "end") == 0) return MPI_Finalize();
  }
  int nothing;
  if (strcmp(how, "hang") == 0)
    for (;;) MPI_Barrier(MPI_COMM_WORLD);
  MPI_Recv(&nothing, 1, MPI_INT, MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
