// Messages per second of all pairs (r, r + half) at once, 64 under way per pair, as the columns of OSU's multiple
// bandwidth and message rate test: `message_rate [largest=4096] [count=10]`. With an odd count the last rank is idle.
#include "micro.h"

enum { window = 64 };

static void exchange_window(char* buffer, int bytes, int sends, int peer) {
  MPI_Request requests[window];
  for (int k = 0; k < window; ++k)
    if (sends)
      MPI_Isend(buffer, bytes, MPI_CHAR, peer, 100, MPI_COMM_WORLD, &requests[k]);
    else
      MPI_Irecv(buffer, bytes, MPI_CHAR, peer, 100, MPI_COMM_WORLD, &requests[k]);
  MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
  if (sends)
    MPI_Recv(buffer, 4, MPI_CHAR, peer, 101, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  else
    MPI_Send(buffer, 4, MPI_CHAR, peer, 101, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  micro_begin(&argc, &argv);
  int largest = argument(argc, argv, "largest", 4096, 4), count = argument(argc, argv, "count", 10, 1);
  int pairs = rank_count / 2, sends = my_rank < pairs, talks = my_rank < 2 * pairs;
  int peer = sends ? my_rank + pairs : my_rank - pairs;
  char* buffer = buffer_of((size_t)largest);
  if (my_rank == 0)
    printf("# MPI Multiple Bandwidth / Message Rate Test\n# [ pairs: %d ] [ window size: %d ]\n%-10s%18s%20s\n", pairs,
           window, "# Size", "MB/s", "Messages/s");
  for (int bytes = 1; bytes <= largest; bytes *= 2) {
    if (talks) exchange_window(buffer, bytes, sends, peer);
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime();
    for (int i = 0; talks && i < count; ++i) exchange_window(buffer, bytes, sends, peer);
    seconds = slowest(sends ? MPI_Wtime() - seconds : 0);
    double messages = (double)pairs * window * count;
    if (my_rank == 0) printf("%-10d%18.2f%20.2f\n", bytes, messages * bytes / seconds / 1e6, messages / seconds);
  }
  free(buffer);
  MPI_Finalize();
}
