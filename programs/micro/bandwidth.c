// Bandwidth from rank 0 to the last rank over message sizes, 64 messages under way at once and one answer for them, as
// the columns of OSU's bandwidth test: `bandwidth [largest=4194304] [count=10]`.
#include "micro.h"

enum { window = 64 };

static double send_windows(char* buffer, int bytes, int count, int peer) {
  MPI_Request requests[window];
  double begin = 0;
  for (int i = -1; i < count; ++i) {  // one window to warm up
    if (i == 0) begin = MPI_Wtime();
    for (int k = 0; k < window; ++k)
      if (my_rank == 0)
        MPI_Isend(buffer, bytes, MPI_CHAR, peer, 100, MPI_COMM_WORLD, &requests[k]);
      else
        MPI_Irecv(buffer, bytes, MPI_CHAR, peer, 100, MPI_COMM_WORLD, &requests[k]);
    MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
    if (my_rank == 0)
      MPI_Recv(buffer, 4, MPI_CHAR, peer, 101, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
      MPI_Send(buffer, 4, MPI_CHAR, peer, 101, MPI_COMM_WORLD);
  }
  return MPI_Wtime() - begin;
}

int main(int argc, char** argv) {
  micro_begin(&argc, &argv);
  int largest = argument(argc, argv, "largest", 1 << 22, 4), count = argument(argc, argv, "count", 10, 1);
  int peer = my_rank == 0 ? rank_count - 1 : 0, talks = my_rank == 0 || my_rank == rank_count - 1;
  char* buffer = buffer_of((size_t)largest);
  if (my_rank == 0) printf("# MPI Bandwidth Test\n%-10s%18s\n", "# Size", "Bandwidth (MB/s)");
  for (int bytes = 1; bytes <= largest; bytes *= 2) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (!talks) continue;
    double seconds = send_windows(buffer, bytes, count, peer);
    if (my_rank == 0) printf("%-10d%18.2f\n", bytes, (double)bytes * window * count / seconds / 1e6);
  }
  free(buffer);
  MPI_Finalize();
}
