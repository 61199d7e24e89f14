// Latency between rank 0 and the last rank over message sizes, as the columns of OSU's latency test:
// `latency [largest=4194304] [count=100]`.
#include "micro.h"

static double half_round_trip(char* buffer, int bytes, int count, int peer) {
  double begin = 0;
  for (int i = -10; i < count; ++i) {
    if (i == 0) begin = MPI_Wtime();
    if (my_rank == 0) MPI_Send(buffer, bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
    MPI_Recv(buffer, bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (my_rank != 0) MPI_Send(buffer, bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
  }
  return (MPI_Wtime() - begin) / count / 2;
}

int main(int argc, char** argv) {
  micro_begin(&argc, &argv);
  int largest = argument(argc, argv, "largest", 1 << 22, 1), count = argument(argc, argv, "count", 100, 1);
  int peer = my_rank == 0 ? rank_count - 1 : 0, talks = my_rank == 0 || my_rank == rank_count - 1;
  char* buffer = buffer_of((size_t)largest);
  if (my_rank == 0) printf("# MPI Latency Test\n%-10s%18s\n", "# Size", "Latency (us)");
  for (int bytes = 1; bytes <= largest; bytes *= 2) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (!talks) continue;
    double seconds = half_round_trip(buffer, bytes, bytes > 8192 ? (count + 9) / 10 : count, peer);
    if (my_rank == 0) printf("%-10d%18.2f\n", bytes, seconds * 1e6);
  }
  free(buffer);
  MPI_Finalize();
}
