// What the microbenchmarks share: arguments of the form name=value, and timing. All times are the program's own
// MPI_Wtime: virtual under dryfly, real natively.
#pragma once

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int my_rank;
static int rank_count;

__attribute__((noreturn)) static inline void micro_fail(const char* sentence) {
  if (my_rank == 0) fprintf(stderr, "%s\n", sentence);
  MPI_Finalize();
  exit(2);
}

// The value of the argument `name=VALUE`, or `otherwise` when it is not given; at least `least`.
static inline int argument(int argc, char** argv, const char* name, int otherwise, int least) {
  size_t length = strlen(name);
  for (int i = 1; i < argc; ++i) {
    if (strncmp(argv[i], name, length) != 0 || argv[i][length] != '=') continue;
    char* end;
    long value = strtol(argv[i] + length + 1, &end, 10);
    if (*end == '\0' && argv[i][length + 1] != '\0' && value >= least && value <= 1 << 30) return (int)value;
    if (my_rank == 0) fprintf(stderr, "%s: a whole number from %d to 2^30 is needed\n", argv[i], least);
    MPI_Finalize();
    exit(2);
  }
  return otherwise;
}

static inline void micro_begin(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &rank_count);
  if (rank_count < 2) micro_fail("at least 2 ranks are needed");
}

static inline char* buffer_of(size_t bytes) {
  char* buffer = malloc(bytes > 0 ? bytes : 1);
  if (buffer == NULL) micro_fail("there is not enough memory for the buffers");
  memset(buffer, 1, bytes);
  return buffer;
}

// The largest value of all ranks, on every rank.
static inline double slowest(double seconds) {
  double largest;
  MPI_Allreduce(&seconds, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return largest;
}
