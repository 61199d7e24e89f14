// The wall time of MPI_Alltoalls of 4 KiB, from the first rank's entry to the last rank's return, as this computer's
// clock has it: `alltoall_wall COUNT` prints a line for each. Buffers are written to before, as OSU's are.
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { block = 4096, most = 100 };

// The system call itself: the C library's clocks are virtual here.
static double wall_s(void) {
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int count = argc > 1 && atoi(argv[1]) > 0 && atoi(argv[1]) <= most ? atoi(argv[1]) : 1;
  const size_t bytes = (size_t)block * (size_t)ranks;
  char *send = malloc(bytes), *receive = malloc(bytes);
  if (send == NULL || receive == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  memset(receive, 0, bytes);
  for (int to = 0; to < ranks; ++to) memset(send + (size_t)to * block, (rank + to) % 251, block);
  double entered[most], left[most];
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < count; ++i) {
    entered[i] = wall_s();
    MPI_Alltoall(send, block, MPI_CHAR, receive, block, MPI_CHAR, MPI_COMM_WORLD);
    left[i] = wall_s();
  }
  for (int from = 0; from < ranks; ++from) {
    for (int byte = 0; byte < block; byte += 512) {
      if (receive[(size_t)from * block + (size_t)byte] != (char)((rank + from) % 251)) MPI_Abort(MPI_COMM_WORLD, 2);
    }
  }
  double first[most], last[most];
  MPI_Reduce(entered, first, count, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
  MPI_Reduce(left, last, count, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  for (int i = 0; rank == 0 && i < count; ++i) {
    // Ranks run ahead of each other, so one alltoall begins before the one before it is over everywhere.
    printf("alltoall %.6f s\n", last[i] - (i == 0 ? first[0] : last[i - 1]));
  }
  MPI_Finalize();
  return 0;
}
