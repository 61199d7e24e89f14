// Sessions one after another, beside each other, and beside MPI_COMM_WORLD in every order of beginnings and ends:
//
//   sessions STEPS     each letter does one thing, and what is open is used after it: o opens a session, O one of the
//                      process alone in rank 0 only, c closes the oldest, i and f are MPI_Init and MPI_Finalize,
//                      s sleeps for a virtual second, x leaves the closing to an exit handler
//
// Rank 0 prints the virtual seconds between the first and the last use.
#include <time.h>

#include "check.h"

enum { sessions_max = 8 };

static struct {
  MPI_Session session;
  MPI_Comm comm;
  int is_open;
} all[sessions_max];
static int first, count, has_world;

static void open_session(const char* set, int here) {
  REQUIRE(count < sessions_max, "too many sessions");
  all[count].is_open = here;
  if (here) {
    MPI_Group group;
    char tag[32];
    snprintf(tag, sizeof tag, "session %d", count);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &all[count].session);
    MPI_Group_from_session_pset(all[count].session, set, &group);
    MPI_Comm_create_from_group(group, tag, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &all[count].comm);
    MPI_Group_free(&group);
  }
  ++count;
}

static void close_session(void) {
  if (all[first].is_open) {
    MPI_Comm_free(&all[first].comm);
    MPI_Session_finalize(&all[first].session);
  }
  ++first;
}

static void close_all(void) {
  while (first < count) close_session();
}

static void use(MPI_Comm comm) {
  int rank, size, sum = 0, from = -1;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
  REQUIRE_EQUAL(sum, size * (size - 1) / 2, "the sum of the ranks");
  MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 3, &from, 1, MPI_INT, (rank + size - 1) % size, 3, comm,
               MPI_STATUS_IGNORE);
  REQUIRE_EQUAL(from, (rank + size - 1) % size, "the neighbour");
}

static void use_all(void) {
  for (int i = first; i < count; ++i) {
    if (all[i].is_open) use(all[i].comm);
  }
  if (has_world) use(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  double began = 0, ended = 0;
  REQUIRE(argc == 2, "one argument is needed");
  for (const char* step = argv[1]; *step != 0; ++step) {
    switch (*step) {
      case 'o':
        open_session("mpi://WORLD", 1);
        if (step == argv[1]) MPI_Comm_rank(all[0].comm, &my_rank);
        break;
      case 'O':
        open_session("mpi://SELF", my_rank == 0);
        break;
      case 'c':
        close_session();
        break;
      case 'i':
        MPI_Init(&argc, &argv);
        has_world = 1;
        MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
        break;
      case 'f':
        has_world = 0;
        MPI_Finalize();
        break;
      case 's':
        nanosleep(&(struct timespec){1, 0}, NULL);
        break;
      case 'x':
        atexit(close_all);
        break;
      default:
        REQUIRE(0, "what is %c?", *step);
    }
    use_all();
    if (first < count || has_world) ended = MPI_Wtime();
    if (began == 0) began = ended;
  }
  if (my_rank == 0) {
    printf("ok sessions, %.9f s\n", ended - began);
    fflush(stdout);
  }
  return 0;
}
