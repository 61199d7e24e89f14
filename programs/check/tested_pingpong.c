// Half of a round trip of 8 B, received in several ways: the name of what is waited by, and microseconds. And what the
// MPI_Test takes that finds a message which came long before, without and with one in vain at the beginning.
#include <mpi.h>
#include <stdio.h>
#include <time.h>

enum { rounds = 20 };

static void receive(int how, char* bytes, int from) {
  MPI_Request request;
  MPI_Irecv(bytes, 8, MPI_CHAR, from, 0, MPI_COMM_WORLD, &request);
  int done = 0, which;
  if (how == 0) MPI_Wait(&request, MPI_STATUS_IGNORE);
  while (how == 1 && !done) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  while (how == 2 && !done) MPI_Testall(1, &request, &done, MPI_STATUSES_IGNORE);
  while (how == 3 && !done) MPI_Testany(1, &request, &which, &done, MPI_STATUS_IGNORE);
}

static double late_us(int rank, int tests_first) {
  const struct timespec pause = {0, 100000};
  char bytes[8] = {0};
  double started = 0;
  int done = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) MPI_Send(bytes, 8, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
  if (rank == 1) {
    MPI_Request request;
    MPI_Irecv(bytes, 8, MPI_CHAR, 0, 0, MPI_COMM_WORLD, &request);
    if (tests_first) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    nanosleep(&pause, NULL);
    started = MPI_Wtime();
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  }
  double took = (MPI_Wtime() - started) * 1e6;
  MPI_Bcast(&took, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
  return took;
}

int main(int argc, char** argv) {
  static const char* const names[] = {"wait", "test", "testall", "testany"};
  char bytes[8] = {0};
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int how = 0; how < 4; ++how) {
    double started = 0;
    for (int round = -1; round < rounds; ++round) {
      if (round == 0) started = MPI_Wtime();
      if (rank == 0) MPI_Send(bytes, 8, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
      receive(how, bytes, 1 - rank);
      if (rank == 1) MPI_Send(bytes, 8, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("%s %.4f\n", names[how], (MPI_Wtime() - started) / (2 * rounds) * 1e6);
  }
  double late = late_us(rank, 0), late_first = late_us(rank, 1);
  if (rank == 0) printf("late %.4f\nlate_first %.4f\n", late, late_first);
  MPI_Finalize();
  return 0;
}
