// What reductions of 4 MiB of doubles take, and MPI_Reduce_local of 32 MiB: the call, microseconds with MPI_SUM, and
// with an operation of the program's own, which is no code of the library's.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { doubles = 1 << 19, local_doubles = 1 << 22 };

static double *given, *taken;
static MPI_Op operation;

static void take_first(void* in, void* inout, int* length, MPI_Datatype* type) {
  (void)in, (void)inout, (void)length, (void)type;
}

static int how;  // it is waited for

static void wait_for(MPI_Request* request) {
  int which, done = 0;
  if (how == 0) MPI_Wait(request, MPI_STATUS_IGNORE);
  if (how == 1) MPI_Waitall(1, request, MPI_STATUSES_IGNORE);
  if (how == 2) MPI_Waitany(1, request, &which, MPI_STATUS_IGNORE);
  while (how == 3 && !done) MPI_Test(request, &done, MPI_STATUS_IGNORE);
  while (how == 4 && !done) MPI_Testall(1, request, &done, MPI_STATUSES_IGNORE);
}

static void local(void) { MPI_Reduce_local(given, taken, local_doubles, MPI_DOUBLE, operation); }
static void blocking(void) { MPI_Allreduce(given, taken, doubles, MPI_DOUBLE, operation, MPI_COMM_WORLD); }
static void nonblocking(void) {
  MPI_Request request;
  MPI_Iallreduce(given, taken, doubles, MPI_DOUBLE, operation, MPI_COMM_WORLD, &request);
  wait_for(&request);
}
static void persistent(void) {
  MPI_Request request;
  MPI_Allreduce_init(given, taken, doubles, MPI_DOUBLE, operation, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  MPI_Start(&request);
  wait_for(&request);
  MPI_Request_free(&request);
}
static void scattering(void) {
  int ranks;
  MPI_Request request;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Ireduce_scatter_block(given, taken, doubles / ranks, MPI_DOUBLE, operation, MPI_COMM_WORLD, &request);
  wait_for(&request);
}
static void scanning(void) {
  MPI_Request request;
  MPI_Iscan(given, taken, doubles, MPI_DOUBLE, operation, MPI_COMM_WORLD, &request);
  wait_for(&request);
}

static double took_us(void (*call)(void)) {
  call();
  MPI_Barrier(MPI_COMM_WORLD);
  double started = MPI_Wtime();
  call();
  double mine = (MPI_Wtime() - started) * 1e6, most;
  MPI_Allreduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return most;
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*call)(void);
    int how;
  } calls[] = {{"MPI_Reduce_local", local},
               {"MPI_Allreduce", blocking},
               {"MPI_Iallreduce", nonblocking},
               {"MPI_Allreduce_init", persistent},
               {"MPI_Ireduce_scatter_block", scattering},
               {"MPI_Iscan", scanning},
               {"MPI_Waitall", scanning, 1},
               {"MPI_Waitany", scanning, 2},
               {"MPI_Test", scanning, 3},
               {"MPI_Testall", scanning, 4}};
  int rank;
  MPI_Op own;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Op_create(take_first, 1, &own);
  given = calloc(local_doubles, sizeof *given);
  taken = calloc(local_doubles, sizeof *taken);
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    how = calls[i].how;
    operation = MPI_SUM;
    double sums = took_us(calls[i].call);
    operation = own;
    double free_of_charge = took_us(calls[i].call);
    if (rank == 0) printf("%s %.3f %.3f\n", calls[i].name, sums, free_of_charge);
  }
  MPI_Op_free(&own);
  free(given);
  free(taken);
  MPI_Finalize();
  return 0;
}
