// Rank 0 computes in long pieces, `uneven MS LONG SHORT` in microseconds each, and looks for messages in between; ranks 1
// and 2 compute in short ones, in turn, and tell each other by a message. All take so many milliseconds.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { told = 1, other = 2 };

// The system call itself: the C library's clocks are virtual here.
static double processor_us(void) {
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

static uint64_t value = 1;

static void compute(double us) {
  for (const double until = processor_us() + us; processor_us() < until;) {
    for (int i = 0; i < 2000; ++i) value = value * 6364136223846793005U + 1;
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 4) MPI_Abort(MPI_COMM_WORLD, 2);
  const double all_us = 1e3 * atof(argv[1]), long_us = atof(argv[2]), short_us = atof(argv[3]);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    for (double done = 0; done < all_us; done += long_us) {
      compute(long_us);
      int found;
      MPI_Iprobe(MPI_ANY_SOURCE, other, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
  } else if (rank <= 2) {
    const int mate = 3 - rank;
    for (double done = 0; done < all_us; done += 2 * short_us) {
      if (rank == 2) MPI_Recv(NULL, 0, MPI_BYTE, mate, told, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      compute(short_us);
      MPI_Send(NULL, 0, MPI_BYTE, mate, told, MPI_COMM_WORLD);
      if (rank == 1) MPI_Recv(NULL, 0, MPI_BYTE, mate, told, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("computed %llu\n", (unsigned long long)value);
  MPI_Finalize();
  return 0;
}
