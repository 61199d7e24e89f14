// How much of the processor a large message leaves to the program, in the manner of Sandia's overlap measurement
// (SMB, mpi_overhead): `overlap [bytes=1048576] [count=20]`. Rank 0 posts a nonblocking receive (or send), works for
// a given time without calling MPI, and waits. The work grows until the cycle is clearly longer than without any; what
// the cycle is then longer than its work is overhead, and availability is 1 - overhead / (cycle without work).
#include <time.h>

#include "micro.h"

static char* buffer;
static int bytes, count;

// Virtual time passes in a sleep, and this rank does not call MPI in it.
static void work(double seconds) {
  struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  if (seconds > 0) nanosleep(&time, NULL);
}

// One cycle on rank 0: its peer is ready with the same message and does nothing else.
static double cycle(int receives, double seconds) {
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    MPI_Request request;
    if ((my_rank == 0) == receives) {
      MPI_Irecv(buffer, bytes, MPI_CHAR, 1 - my_rank, 0, MPI_COMM_WORLD, &request);
    } else {
      MPI_Isend(buffer, bytes, MPI_CHAR, 1 - my_rank, 0, MPI_COMM_WORLD, &request);
    }
    if (my_rank == 0) work(seconds);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    sum += MPI_Wtime() - start;
  }
  return sum / count;
}

static void measure(const char* name, int receives) {
  const double enough = 1.5;
  double base = cycle(receives, 0), availability = 0;
  MPI_Bcast(&base, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  for (double seconds = base / 16;; seconds *= 1.25) {
    double total = cycle(receives, seconds);
    MPI_Bcast(&total, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    availability = 1 - (total - seconds) / base;
    if (total > enough * base && seconds > base) break;
  }
  if (my_rank == 0)
    printf("overlap %s %d B: %.3f us without work, availability %.1f %%\n", name, bytes, base * 1e6,
           100 * (availability > 0 ? availability : 0));
}

int main(int argc, char** argv) {
  micro_begin(&argc, &argv);
  bytes = argument(argc, argv, "bytes", 1 << 20, 1);
  count = argument(argc, argv, "count", 20, 1);
  buffer = buffer_of((size_t)bytes);
  if (rank_count != 2) micro_fail("exactly 2 ranks are needed");
  measure("receive", 1);
  measure("send", 0);
  free(buffer);
  MPI_Finalize();
}
