/* More messages than a rank's ring of events holds have come, and been sent, before it next looks: every rank posts
 * them all, lets virtual time pass, and waits. Prints one line when all is as it should be. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { messages = 2000 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  static int out[messages], in[messages];
  static MPI_Request requests[2 * messages];
  const int to = (rank + size / 2) % size;
  for (int i = 0; i < messages; ++i) {
    out[i] = rank * messages + i;
    MPI_Irecv(&in[i], 1, MPI_INT, to, 0, MPI_COMM_WORLD, &requests[i]);
    MPI_Isend(&out[i], 1, MPI_INT, to, 0, MPI_COMM_WORLD, &requests[messages + i]);
  }
  usleep(10000);
  MPI_Waitall(2 * messages, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < messages; ++i) {
    if (in[i] == to * messages + i) continue;
    fprintf(stderr, "rank %d: message %d is %d\n", rank, i, in[i]);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (rank == 0) printf("%d messages each: all arrived\n", messages);
  MPI_Finalize();
  return 0;
}
