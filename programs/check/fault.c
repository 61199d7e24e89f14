// Programs that go wrong, one way each: `fault WAY [RANK]`. The rank given (1 unless told) misbehaves after a barrier,
// while all others wait for a message that never comes.
#define _GNU_SOURCE
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static void wait_for_ever(void) {
  int value;
  MPI_Recv(&value, 1, MPI_INT, left_rank(), 12345, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

// The even ranks look for a message, the others have posted a receive for it.
static void probe_for_ever(void) {
  if (my_rank % 2 == 0) MPI_Probe(MPI_ANY_SOURCE, 12345, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  wait_for_ever();
}

static void segfault(void) {
  volatile int* nowhere = NULL;
  *nowhere = 1;
}

static void exit_three(void) { exit(3); }
static void exit_zero_without_finalize(void) { exit(0); }
static void call_abort(void) { abort(); }
static void call_mpi_abort(void) { MPI_Abort(MPI_COMM_WORLD, 7); }
static void kill_itself(void) { kill(getpid(), SIGKILL); }

// Twelve seconds of wall time without any call into MPI; then it goes on. The system call itself is made, because the
// C library's clocks are virtual under dryfly and would hardly move.
static void spin(void) {
  struct timespec begin, now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &begin);
  do {
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  } while (now.tv_sec - begin.tv_sec < 12);
}

// Thirteen seconds of wall time in calls that find nothing.
static void look_in_vain(bool with_test) {
  struct timespec begin, now;
  int found = 0, value;
  MPI_Request request = MPI_REQUEST_NULL;
  if (with_test) MPI_Irecv(&value, 1, MPI_INT, 0, 12345, MPI_COMM_SELF, &request);
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &begin);
  do {
    if (with_test)
      MPI_Test(&request, &found, MPI_STATUS_IGNORE);
    else
      MPI_Iprobe(MPI_ANY_SOURCE, 12345, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    REQUIRE(!found, "a message came that nobody has sent");
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  } while (now.tv_sec - begin.tv_sec < 13);
  if (!with_test) return;
  MPI_Cancel(&request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void iprobe_in_vain(void) { look_in_vain(false); }
static void test_in_vain(void) { look_in_vain(true); }

// Traffic until somebody ends it.
static void talk_for_ever(void) {
  for (;;) MPI_Barrier(MPI_COMM_WORLD);
}

static const struct {
  const char* name;
  void (*misbehave)(void);
  enum { others_wait, everybody, others_go_on } scope;
} ways[] = {
    {"segfault", segfault, others_wait},
    {"exit3", exit_three, others_wait},
    {"exit0", exit_zero_without_finalize, others_wait},
    {"abort", call_abort, others_wait},
    {"mpi_abort", call_mpi_abort, others_wait},
    {"kill", kill_itself, others_wait},
    {"deadlock", wait_for_ever, everybody},
    {"probe", probe_for_ever, everybody},
    {"spin", spin, others_go_on},
    {"iprobe", iprobe_in_vain, others_go_on},
    {"test", test_in_vain, others_go_on},
    {"talk", talk_for_ever, everybody},
};

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  const char* name = argc > 1 ? argv[1] : "";
  int culprit = argc > 2 ? atoi(argv[2]) : 1;
  for (size_t w = 0; w < sizeof ways / sizeof ways[0]; ++w) {
    if (strcmp(ways[w].name, name) != 0) continue;
    if (my_rank == 0) {
      printf("fault %s begins\n", name);
      fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (ways[w].scope == everybody || my_rank == culprit)
      ways[w].misbehave();
    else if (ways[w].scope == others_wait)
      wait_for_ever();
    return check_end("fault");
  }
  REQUIRE(0, "there is no fault named '%s'", name);
}
