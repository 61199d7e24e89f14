// What needs the address of every other rank, in a job of many: an alltoall, the same on a communicator with its ranks
// reversed, and messages between each rank and the one opposite. At the end each rank counts the bytes of the run's
// segment that it has mapped for itself alone, which in large runs are MPICH's table of addresses
// (rank/common_table.hpp): rank 0 prints the fewest of any rank.
#include "check.h"

static void exchange(MPI_Comm comm, const char* what) {
  int rank;
  MPI_Comm_rank(comm, &rank);
  int64_t* send = allocate((size_t)rank_count * sizeof(int64_t));
  int64_t* receive = allocate((size_t)rank_count * sizeof(int64_t));
  for (int peer = 0; peer < rank_count; ++peer) send[peer] = (int64_t)rank * rank_count + peer;
  MPI_Alltoall(send, 1, MPI_INT64_T, receive, 1, MPI_INT64_T, comm);
  for (int peer = 0; peer < rank_count; ++peer)
    REQUIRE(receive[peer] == (int64_t)peer * rank_count + rank, "%s: from rank %d comes %lld", what, peer,
            (long long)receive[peer]);
  free(send);
  free(receive);
}

static void meet_opposite(void) {
  int opposite = (my_rank + rank_count / 2) % rank_count;
  int before = (my_rank + rank_count - rank_count / 2) % rank_count;
  int64_t mine = my_rank, theirs = -1;
  MPI_Sendrecv(&mine, 1, MPI_INT64_T, opposite, 1, &theirs, 1, MPI_INT64_T, before, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  REQUIRE_EQUAL(theirs, before, "the number of the rank opposite");
}

static long mapped_privately(void) {
  char line[4096];
  long bytes = 0;
  FILE* maps = fopen("/proc/self/maps", "r");
  REQUIRE(maps != NULL, "/proc/self/maps cannot be read");
  while (fgets(line, sizeof line, maps) != NULL) {
    unsigned long from, to;
    char access[8];
    if (sscanf(line, "%lx-%lx %7s", &from, &to, access) != 3) continue;
    if (access[3] == 'p' && strstr(line, "memfd:dryfly-run") != NULL) bytes += (long)(to - from);
  }
  fclose(maps);
  return bytes;
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  exchange(MPI_COMM_WORLD, "alltoall");
  MPI_Comm reversed;
  MPI_Comm_split(MPI_COMM_WORLD, 0, rank_count - my_rank, &reversed);
  exchange(reversed, "alltoall in reverse");
  MPI_Comm_free(&reversed);
  meet_opposite();
  long own = mapped_privately(), least = 0;
  MPI_Reduce(&own, &least, 1, MPI_LONG, MPI_MIN, 0, MPI_COMM_WORLD);
  if (my_rank == 0) printf("mapped %ld\n", least);
  return check_end("many");
}
