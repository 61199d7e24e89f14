// A rank starts a process in the way that its argument names; "before": it forks before MPI_Init.
#define _GNU_SOURCE
#include <mpi.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static void wait_for(pid_t child) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fprintf(stderr, "the child has failed\n");
    exit(1);
  }
}

static void forked(void) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  wait_for(child);
}

static void start(const char* how) {
  char* const arguments[] = {"true", NULL};
  if (strcmp(how, "fork") == 0) {
    forked();
  } else if (strcmp(how, "system") == 0) {
    if (system("true") != 0) exit(1);
  } else if (strcmp(how, "popen") == 0) {
    FILE* const pipe = popen("true", "r");
    if (pipe == NULL || pclose(pipe) != 0) exit(1);
  } else if (strcmp(how, "spawn") == 0) {
    pid_t child = -1;
    if (posix_spawnp(&child, "true", NULL, NULL, arguments, environ) != 0) exit(1);
    wait_for(child);
  } else if (strcmp(how, "vfork") == 0) {
    const pid_t child = vfork();
    if (child == 0) {
      execvp("true", arguments);
      _exit(1);
    }
    wait_for(child);
  }
}

int main(int argc, char** argv) {
  const char* const how = argc > 1 ? argv[1] : "fork";
  if (strcmp(how, "before") == 0) forked();
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int round = 0; round < 2; ++round) {
    double sent[1000];
    double got[1000];
    for (int n = 0; n < 1000; ++n) sent[n] = rank + 100.0 * round;
    const int left = (rank + size - 1) % size;
    MPI_Sendrecv(sent, 1000, MPI_DOUBLE, (rank + 1) % size, 0, got, 1000, MPI_DOUBLE, left, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    if (got[999] != left + 100.0 * round) MPI_Abort(MPI_COMM_WORLD, 1);
    if (round == 0) start(how);
  }
  MPI_Finalize();
  return 0;
}
