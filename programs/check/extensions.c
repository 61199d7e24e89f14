// What an MPI library has beyond the standard: Open MPI agrees (ULFM), MPICH makes a communicator of a stream.
#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif
#include <stdio.h>
#include <unistd.h>

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);

  // The others wait for rank 1, which comes 2 ms later.
  if (rank == 1) usleep(2000);
  const double began = MPI_Wtime();
#if defined(OPEN_MPI)
  int flag = rank == 1 ? 2 : 3;
  MPIX_Comm_agree(MPI_COMM_WORLD, &flag);
  PMPIX_Comm_agree(MPI_COMM_WORLD, &flag);
  if (flag != 2) printf("agreed on %d\n", flag);
#else
  MPI_Comm first, second;
  MPIX_Stream_comm_create(MPI_COMM_WORLD, MPIX_STREAM_NULL, &first);
  PMPIX_Stream_comm_create(MPI_COMM_WORLD, MPIX_STREAM_NULL, &second);
#endif
  if (rank == 0) printf("took %.9f s\n", MPI_Wtime() - began);

#if !defined(OPEN_MPI)
  MPI_Comm_free(&first);
  MPI_Comm_free(&second);
#endif
  MPI_Finalize();
  return 0;
}
