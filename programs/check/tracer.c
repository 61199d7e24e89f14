/* A tracer in the manner of Score-P: an event with a time of its own clock (CLOCK says which) at the beginning and the end
 * of each call; communicators are followed, with a number of each that their members agree on, kept as an attribute; at
 * the beginning and the end the ranks' clocks are compared by messages. Printed in MPI_Finalize. With PROGRAM also, or
 * alone, a program that makes and frees communicators and talks on them. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

#ifdef TOOL
#ifndef CLOCK
#define CLOCK CLOCK_MONOTONIC_RAW
#endif
enum { most_events = 10000 };
static double events[most_events];
static int event_count;
static int number_key = MPI_KEYVAL_INVALID;
static int live, made;

static double now(void) {
#ifdef OF_DAY
  struct timeval read;
  gettimeofday(&read, NULL);
  return (double)read.tv_sec + (double)read.tv_usec * 1e-6;
#else
  struct timespec read;
  clock_gettime(CLOCK, &read);
  return (double)read.tv_sec + (double)read.tv_nsec * 1e-9;
#endif
}
static void event(void) {
  if (event_count == most_events) PMPI_Abort(MPI_COMM_WORLD, 1);
  events[event_count++] = now();
}

static int forget(MPI_Comm comm, int key, void* number, void* state) {
  (void)comm, (void)key, (void)state;
  free(number);
  --live;
  return MPI_SUCCESS;
}
/* Its members learn its number from the first of them, on the communicator itself. */
static void follow(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return;
  int* number = malloc(sizeof *number);
  *number = ++made;
  PMPI_Bcast(number, 1, MPI_INT, 0, comm);
  PMPI_Comm_set_attr(comm, number_key, number);
  ++live;
}

/* By how much the other's clock is ahead, halfway between a question and its answer. */
static void compare_clocks(const char* when) {
  int rank, size;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  double theirs = 0, worst = 0;
  for (int other = 1; rank == 0 && other < size; ++other) {
    const double asked = now();
    PMPI_Send(&theirs, 1, MPI_DOUBLE, other, 0, MPI_COMM_WORLD);
    PMPI_Recv(&theirs, 1, MPI_DOUBLE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const double ahead = theirs - (asked + now()) / 2;
    worst = ahead > worst ? ahead : -ahead > worst ? -ahead : worst;
  }
  if (rank != 0) {
    PMPI_Recv(&theirs, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    theirs = now();
    PMPI_Send(&theirs, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
  } else {
    printf("clocks at the %s: %.9f apart\n", when, worst);
  }
}

#define WRAP(name, parameters, words, made_comm) \
  int MPI_##name parameters {                    \
    event();                                     \
    const int status = PMPI_##name words;        \
    made_comm;                                   \
    event();                                     \
    return status;                               \
  }
WRAP(Comm_dup, (MPI_Comm a, MPI_Comm* b), (a, b), follow(*b))
WRAP(Comm_split, (MPI_Comm a, int b, int c, MPI_Comm* d), (a, b, c, d), follow(*d))
WRAP(Comm_create, (MPI_Comm a, MPI_Group b, MPI_Comm* c), (a, b, c), follow(*c))
WRAP(Cart_create, (MPI_Comm a, int b, const int c[], const int d[], int e, MPI_Comm* f), (a, b, c, d, e, f), follow(*f))
WRAP(Comm_free, (MPI_Comm * a), (a), )
WRAP(Comm_group, (MPI_Comm a, MPI_Group* b), (a, b), )
WRAP(Group_incl, (MPI_Group a, int b, const int c[], MPI_Group* d), (a, b, c, d), )
WRAP(Group_free, (MPI_Group * a), (a), )
WRAP(Sendrecv,
     (const void* a, int b, MPI_Datatype c, int d, int e, void* f, int g, MPI_Datatype h, int i, int j, MPI_Comm k,
      MPI_Status* l),
     (a, b, c, d, e, f, g, h, i, j, k, l), )
WRAP(Isend, (const void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Request* g), (a, b, c, d, e, f, g), )
WRAP(Irecv, (void* a, int b, MPI_Datatype c, int d, int e, MPI_Comm f, MPI_Request* g), (a, b, c, d, e, f, g), )
WRAP(Waitall, (int a, MPI_Request b[], MPI_Status c[]), (a, b, c), )
WRAP(Allreduce, (const void* a, void* b, int c, MPI_Datatype d, MPI_Op e, MPI_Comm f), (a, b, c, d, e, f), )
WRAP(Barrier, (MPI_Comm a), (a), )
int MPI_Init(int* argc, char*** argv) {
  int given;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &given);
  const int status = PMPI_Init(argc, argv);
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &number_key, NULL);
  compare_clocks("beginning");
  return status;
}
/* How much of MPI_T tells a time: its sources of events, and its variables that are timers. */
static int sources_of_time(void) {
  int timers = 0, count = 0;
#ifndef OPEN_MPI
  MPI_T_source_get_num(&timers);
#endif
  MPI_T_pvar_get_num(&count);
  for (int i = 0; i < count; ++i) {
    int no_name = 0, no_words = 0, verbosity, kind = 0, bound, readonly, continuous, atomic;
    MPI_Datatype type;
    MPI_T_enum values;
    MPI_T_pvar_get_info(i, NULL, &no_name, &verbosity, &kind, &type, &values, NULL, &no_words, &bound, &readonly,
                        &continuous, &atomic);
    timers += kind == MPI_T_PVAR_CLASS_TIMER;
  }
  return timers;
}

int MPI_Finalize(void) {
  int rank, variables = 0;
  compare_clocks("end");
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_T_cvar_get_num(&variables);
  double inside = 0;
  for (int i = 0; i < event_count; i += 2) inside += events[i + 1] - events[i];
  if (rank == 0) {
    printf("traced %d events, %d communicators, %d left\n", event_count, made, live);
    printf("traced %.9f s, %.9f s inside\n", events[event_count - 1] - events[0], inside);
    printf("MPI_T: %s control variables, %d times\n", variables > 0 ? "some" : "no", sources_of_time());
  }
  PMPI_Comm_free_keyval(&number_key);
  MPI_T_finalize();
  return PMPI_Finalize();
}
#endif

#ifdef PROGRAM
int main(int argc, char** argv) {
  enum { bytes = 20000, rounds = 10 };
  static char out[bytes], in[bytes];
  int rank, size, one = 1, sum;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const double began = MPI_Wtime();
  for (int i = 0; i < rounds; ++i) {
    MPI_Comm all, half, first, ring;
    MPI_Group everybody, some;
    MPI_Request both[2];
    MPI_Status ends[2];
    const int periodic = 1, only[1] = {0};
    MPI_Comm_dup(MPI_COMM_WORLD, &all);
    MPI_Comm_split(all, rank % 2, rank, &half);
    MPI_Comm_group(all, &everybody);
    MPI_Group_incl(everybody, 1, only, &some);
    MPI_Comm_create(all, some, &first);
    MPI_Cart_create(all, 1, &size, &periodic, 0, &ring);
    MPI_Sendrecv(out, bytes, MPI_CHAR, (rank + 1) % size, 0, in, bytes, MPI_CHAR, (rank + size - 1) % size, 0, ring,
                 MPI_STATUS_IGNORE);
    MPI_Irecv(in, bytes, MPI_CHAR, MPI_ANY_SOURCE, 1, ring, &both[0]);
    MPI_Isend(out, bytes, MPI_CHAR, (rank + 1) % size, 1, ring, &both[1]);
    MPI_Waitall(2, both, ends);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, half);
    MPI_Group_free(&some);
    MPI_Group_free(&everybody);
    if (first != MPI_COMM_NULL) MPI_Comm_free(&first);
    MPI_Comm_free(&ring);
    MPI_Comm_free(&half);
    MPI_Comm_free(&all);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double took = MPI_Wtime() - began;
  if (rank == 0) printf("took %.12f s\n", took);
  MPI_Finalize();
  return 0;
}
#endif
