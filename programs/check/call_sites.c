/* A profiler in the manner of mpiP: statistics for each place that a call comes from, found by a backtrace and timed by
 * MPI_Wtime, which MPI_Pcontrol switches; gathered and printed in MPI_Finalize. With PROGRAM also, or alone, a program
 * that calls MPI_Send and MPI_Allreduce from two places each, one of them while the profiler is off. */
#include <execinfo.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#ifdef TOOL
enum { most_sites = 64 };
struct site {
  const char* call;
  void* from;
  double spent;
  int count;
};
static struct site sites[most_sites];
static int site_count;
static int is_off;

/* The frame above the wrapper's. */
__attribute__((noinline)) static struct site* site_of(const char* call) {
  void* frames[3] = {0, 0, 0};
  backtrace(frames, 3);
  for (int i = 0; i < site_count; ++i) {
    if (sites[i].from == frames[2] && strcmp(sites[i].call, call) == 0) return &sites[i];
  }
  if (site_count == most_sites) PMPI_Abort(MPI_COMM_WORLD, 1);
  sites[site_count].call = call;
  sites[site_count].from = frames[2];
  return &sites[site_count++];
}

#define WRAP(name, parameters, words)                \
  int MPI_##name parameters {                        \
    struct site* site = is_off ? 0 : site_of(#name); \
    const double began = PMPI_Wtime();               \
    const int status = PMPI_##name words;            \
    if (site) {                                      \
      site->spent += PMPI_Wtime() - began;           \
      ++site->count;                                 \
    }                                                \
    return status;                                   \
  }
WRAP(Send, (const void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f), (a, b, c, d, e, f))
WRAP(Recv, (void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Status* g), (a, b, c, d, e, f, g))
WRAP(Allreduce, (const void* a, void* b, int c, MPI_Datatype d, MPI_Op e, MPI_Comm f), (a, b, c, d, e, f))
int MPI_Pcontrol(const int level, ...) {
  is_off = level == 0;
  return MPI_SUCCESS;
}
int MPI_Finalize(void) {
  int rank, size;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank != 0) {
    PMPI_Send(&site_count, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    for (int i = 0; i < site_count; ++i) PMPI_Send(&sites[i].spent, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
  }
  for (int i = 0; rank == 0 && i < site_count; ++i)
    printf("site %d: %s %d %.12f\n", i, sites[i].call, sites[i].count, sites[i].spent);
  for (int other = 1; rank == 0 && other < size; ++other) {
    int count;
    double spent, sum = 0;
    PMPI_Recv(&count, 1, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < count; ++i, sum += spent)
      PMPI_Recv(&spent, 1, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("rank %d: %d sites %.12f\n", other, count, sum);
  }
  return PMPI_Finalize();
}
#endif

#ifdef PROGRAM
int main(int argc, char** argv) {
  static char buffer[20000];
  int rank, size, one = 1, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int last = size - 1;
  const double began = MPI_Wtime();
  for (int i = 0; i < 10; ++i) {
    if (rank == 0) MPI_Send(buffer, sizeof buffer, MPI_CHAR, last, 0, MPI_COMM_WORLD);
    if (rank == last) MPI_Recv(buffer, sizeof buffer, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  }
  MPI_Pcontrol(0);
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Pcontrol(1);
  for (int i = 0; i < 5; ++i) {
    if (rank == 0) MPI_Send(buffer, 8, MPI_CHAR, last, 0, MPI_COMM_WORLD);
    if (rank == last) MPI_Recv(buffer, 8, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  const double took = MPI_Wtime() - began;
  if (rank == 0) printf("took %.12f s\n", took);
  MPI_Finalize();
  return 0;
}
#endif
