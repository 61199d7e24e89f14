// What the parts of calls.c share.
#pragma once
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

enum { most_ranks = 16, window = 4, largest = 32768 };

static int rank_of_me, rank_count, left, right;
static char *mine, *theirs;
static MPI_Request requests[2 * window];

#define WORLD MPI_COMM_WORLD
#define IGNORE MPI_STATUS_IGNORE
#define ALL_IGNORED MPI_STATUSES_IGNORE

// Calls until the call says so. Time passes in between outside of MPI, for a call that finds nothing has soon been seen.
static void let_time_pass(void) { nanosleep(&(struct timespec){0, 20000}, NULL); }
#define UNTIL(flag, call) \
  do { \
    for (flag = 0, call; !flag; call) let_time_pass(); \
  } while (0)
