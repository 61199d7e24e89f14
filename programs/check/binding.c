/* Where the rank is bound, as Linux's calls tell it, and what it costs. Each rank prints a line
 *
 *     rank R cpus 1-8,53 cpu 1 policy 2 domains 0x4 at 2
 *
 * after what the arguments ask for: `set CPU,CPU,...` binds rank R to the R-th CPU (sched_setaffinity), `threads` by
 * pthread_setaffinity_np, `back` so and then to what pthread_getaffinity_np has told before, `told` to that at once,
 * `raw` by syscall; `memory DOMAIN,...` sets the policy (set_mempolicy), `range DOMAIN,...` that of a range (mbind);
 * `init` comes before these to do them in front of MPI_Init. `work BYTES` then announces so many bytes, and the line
 * ends with `took NANOSECONDS`; `look TIMES` reads the clock so often instead. `move CPU,CPU,...` between these binds
 * as `set` and `move-raw` as `raw`; `end CPU,CPU,...` binds as `set`, right before
 * MPI_Finalize. */
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../include/dryfly/work.h"

#define CPUS 1024

static int item(const char* list, int place) {
  while (place-- > 0 && strchr(list, ',') != NULL) list = strchr(list, ',') + 1;
  return atoi(list);
}

static void check(long status, const char* what) {
  if (status == 0) return;
  printf("%s failed: %s\n", what, strerror(status > 0 ? (int)status : errno));
  fflush(stdout);
  _exit(3);
}

static void bind(const char* how, const char* list, int rank) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(item(list, rank), &set);
  if (strcmp(how, "threads") == 0) check(pthread_setaffinity_np(pthread_self(), sizeof set, &set), how);
  if (strcmp(how, "back") == 0 || strcmp(how, "told") == 0) {
    cpu_set_t before;
    check(pthread_getaffinity_np(pthread_self(), sizeof before, &before), how);
    if (*how == 'b') check(pthread_setaffinity_np(pthread_self(), sizeof set, &set), how);
    check(pthread_setaffinity_np(pthread_self(), sizeof before, &before), how);
  }
  if (strcmp(how, "raw") == 0) check(syscall(SYS_sched_setaffinity, 0, sizeof set, &set), how);
  if (strcmp(how, "set") == 0) check(sched_setaffinity(0, sizeof set, &set), how);
}

static void place(const char* how, const char* list, int rank) {
  unsigned long domains = 1UL << item(list, rank);
  if (strcmp(how, "memory") == 0) {
    check(syscall(SYS_set_mempolicy, 2, &domains, 65), how);
  } else {
    void* range = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(syscall(SYS_mbind, range, 1 << 20, 2, &domains, 65, 0), how);
    int at = -1;
    check(syscall(SYS_get_mempolicy, &at, NULL, 0, range, 3), "get_mempolicy");
    if (at != item(list, rank)) printf("the range is in %d\n", at);
    check(syscall(SYS_move_pages, 0, 1, &range, NULL, &at, 0), "move_pages");
    if (at != item(list, rank)) printf("its page is in %d\n", at);
  }
}

static void act(int count, char** words, int before, int rank) {
  int early = 0;
  for (int i = 1; i < count; ++i) {
    if (strcmp(words[i], "init") == 0) early = 1;
    if (i + 1 >= count || early != before) continue;
    bind(words[i], words[i + 1], rank);
    if (strcmp(words[i], "memory") == 0 || strcmp(words[i], "range") == 0) place(words[i], words[i + 1], rank);
  }
}

static void print_cpus(void) {
  cpu_set_t set;
  check(sched_getaffinity(0, sizeof set, &set), "sched_getaffinity");
  const char* separator = "";
  for (int first = 0; first < CPUS; ++first) {
    if (!CPU_ISSET(first, &set)) continue;
    int last = first;
    while (last + 1 < CPUS && CPU_ISSET(last + 1, &set)) ++last;
    printf(last == first ? "%s%d" : "%s%d-%d", separator, first, last);
    separator = ",";
    first = last;
  }
}

int main(int count, char** words) {
  const char* given = getenv("PMI_RANK") != NULL ? getenv("PMI_RANK") : getenv("PMIX_RANK");
  act(count, words, 1, given != NULL ? atoi(given) : 0);
  MPI_Init(&count, &words);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  act(count, words, 0, rank);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 1; i + 1 < count; ++i) {
    if (strcmp(words[i], "move") == 0) bind("set", words[i + 1], rank);
    if (strcmp(words[i], "move-raw") == 0) bind("raw", words[i + 1], rank);
    if (strcmp(words[i], "work") == 0) dryfly_work_announce(DRYFLY_MEMORY, DRYFLY_FP64, atoll(words[i + 1]), 0, 0);
    for (long round = strcmp(words[i], "look") == 0 ? atol(words[i + 1]) : 0; round > 0; --round) MPI_Wtime();
  }
  const double took = MPI_Wtime() - begin;
  int policy = -1;
  int at = -1;
  unsigned long domains[2] = {0, 0};
  check(syscall(SYS_get_mempolicy, &policy, domains, 128, 0, 0), "get_mempolicy");
  check(syscall(SYS_get_mempolicy, &at, NULL, 0, &at, 3), "get_mempolicy");
  unsigned long as_libnuma[2] = {0, ~0UL}; /* which passes one bit more than it has room for */
  check(syscall(SYS_get_mempolicy, NULL, as_libnuma, 65, 0, 0), "get_mempolicy");
  if (as_libnuma[0] != domains[0] || as_libnuma[1] != ~0UL) printf("get_mempolicy has written beyond its words\n");
  for (int turn = 0; turn <= rank; ++turn) MPI_Barrier(MPI_COMM_WORLD);
  printf("rank %d cpus ", rank);
  print_cpus();
  printf(" cpu %d policy %d domains 0x%lx at %d took %.0f\n", sched_getcpu(), policy, domains[0], at, took * 1e9);
  fflush(stdout);
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int turn = rank + 1; turn < size; ++turn) MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 1; i + 1 < count; ++i) {
    if (strcmp(words[i], "end") == 0) bind("set", words[i + 1], rank);
  }
  MPI_Finalize();
  return 0;
}
