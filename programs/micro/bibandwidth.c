// Bandwidth in both directions at once between rank 0 and the last rank, 64 messages under way each way, as the
// columns of OSU's bidirectional bandwidth test: `bibandwidth [largest=4194304] [count=10]`. Bytes of both count.
#include "micro.h"

enum { window = 64 };

static double exchange_windows(char* send, char* receive, int bytes, int count, int peer) {
  MPI_Request requests[2 * window];
  double begin = 0;
  for (int i = -1; i < count; ++i) {  // one window to warm up
    if (i == 0) begin = MPI_Wtime();
    for (int k = 0; k < window; ++k) MPI_Irecv(receive, bytes, MPI_CHAR, peer, 100, MPI_COMM_WORLD, &requests[k]);
    for (int k = 0; k < window; ++k) MPI_Isend(send, bytes, MPI_CHAR, peer, 100, MPI_COMM_WORLD, &requests[window + k]);
    MPI_Waitall(2 * window, requests, MPI_STATUSES_IGNORE);
    MPI_Sendrecv(send, 4, MPI_CHAR, peer, 101, receive, 4, MPI_CHAR, peer, 101, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  return MPI_Wtime() - begin;
}

int main(int argc, char** argv) {
  micro_begin(&argc, &argv);
  int largest = argument(argc, argv, "largest", 1 << 22, 4), count = argument(argc, argv, "count", 10, 1);
  int peer = my_rank == 0 ? rank_count - 1 : 0, talks = my_rank == 0 || my_rank == rank_count - 1;
  char *send = buffer_of((size_t)largest), *receive = buffer_of((size_t)largest);
  if (my_rank == 0) printf("# MPI Bi-Directional Bandwidth Test\n%-10s%18s\n", "# Size", "Bandwidth (MB/s)");
  for (int bytes = 1; bytes <= largest; bytes *= 2) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (!talks) continue;
    double seconds = exchange_windows(send, receive, bytes, count, peer);
    if (my_rank == 0) printf("%-10d%18.2f\n", bytes, 2.0 * bytes * window * count / seconds / 1e6);
  }
  free(send);
  free(receive);
  MPI_Finalize();
}
