/* A ping-pong between rank 0 and each other rank, and a tool that intercepts MPI calls. Which part this file is, -D says:
 *   PROGRAM              the program; with DIRECT it calls PMPI_ names throughout
 *   TOOL                 a tool that calls PMPI_X
 *   TOOL and NEXT        one that finds MPI_X of whoever comes next by dlsym, as a preloaded one does
 *   TOOL and TIMES       one in the manner of mpiP: times every call by PMPI_Wtime, and reduces the sum in MPI_Finalize
 * PROGRAM and TOOL together are a tool that is compiled into the program. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef TOOL
static int calls;
static double spent;
#ifdef TIMES
#define CLOCK PMPI_Wtime()
#else
#define CLOCK 0.0
#endif
#ifdef NEXT
#define THEIRS(name) ((__typeof__(&MPI_##name))dlsym(RTLD_NEXT, "MPI_" #name))
#else
#define THEIRS(name) PMPI_##name
#endif
#define WRAP(name, parameters, words)       \
  int MPI_##name parameters {               \
    const double began = CLOCK;             \
    const int status = THEIRS(name) words;  \
    spent += CLOCK - began;                 \
    ++calls;                                \
    return status;                          \
  }
WRAP(Init, (int* a, char*** b), (a, b))
WRAP(Send, (const void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f), (a, b, c, d, e, f))
WRAP(Recv, (void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Status* g), (a, b, c, d, e, f, g))
double MPI_Wtime(void) { return THEIRS(Wtime)(); }
int MPI_Finalize(void) {
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
#ifdef TIMES
  double sum = 0;
  PMPI_Reduce(&spent, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("tool: %.12f s\n", sum);
#endif
  if (rank == 0) printf("tool: %d calls\n", calls);
  return THEIRS(Finalize)();
}
#endif

#ifdef PROGRAM
#ifdef DIRECT
#define M(name) PMPI_##name
#else
#define M(name) MPI_##name
#endif
int main(int argc, char** argv) {
  enum { rounds = 10, bytes = 20000 };
  static char buffer[bytes];
  int rank, size;
  M(Init)(&argc, &argv);
  M(Comm_rank)(MPI_COMM_WORLD, &rank);
  M(Comm_size)(MPI_COMM_WORLD, &size);
  const double began = M(Wtime)();
  for (int i = 0; i < rounds; ++i) {
    for (int other = 1; rank == 0 && other < size; ++other) {
      M(Send)(buffer, bytes, MPI_CHAR, other, 0, MPI_COMM_WORLD);
      M(Recv)(buffer, bytes, MPI_CHAR, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (rank != 0) {
      M(Recv)(buffer, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      M(Send)(buffer, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
  }
  const double took = M(Wtime)() - began;
  if (rank == 0) printf("took %.12f s\n", took);
  M(Finalize)();
  return 0;
}
#endif
