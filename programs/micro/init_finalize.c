// Nothing but MPI_Init and MPI_Finalize: what starting and ending a job takes.
#include <mpi.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Finalize();
}
