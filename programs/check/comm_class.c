// Communicators with traffic classes of their own, in one job: every rank has a storm of large messages under way in
// one communicator while it takes part in small allreduces in another. `comm_class QUICK STORM`: the classes of the
// two, "none" for no hint. Rank 0 prints the mean time of an allreduce.
#include "check.h"

enum { allreduces = 15, storm_bytes = 256 << 10, in_flight = 4, rounds = 3 };
static const char key[] = "dryfly_traffic_class";

static MPI_Comm with_class(const char* name) {
  MPI_Comm made;
  MPI_Info info, used;
  char value[64] = "";
  int there;
  MPI_Info_create(&info);
  if (strcmp(name, "none") != 0) MPI_Info_set(info, key, name);
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &made);
  MPI_Comm_get_info(made, &used);
  MPI_Info_get(used, key, sizeof value - 1, value, &there);
  REQUIRE_EQUAL(there, strncmp(name, "TC_", 3) == 0, "whether the communicator says that it has a class");
  REQUIRE(!there || strcmp(value, name) == 0, "the communicator's class is %s and should be %s", value, name);
  MPI_Info_free(&used);
  MPI_Info_free(&info);
  return made;
}

static double reduce_all(MPI_Comm over) {
  const double begin = MPI_Wtime();
  for (int i = 0; i < allreduces; ++i) {
    int64_t sum = 0, expected = 0;
    const int64_t own = value_of(my_rank, i);
    MPI_Allreduce(&own, &sum, 1, MPI_INT64_T, MPI_SUM, over);
    for (int rank = 0; rank < rank_count; ++rank) expected += value_of(rank, i);
    REQUIRE_EQUAL(sum, expected, "the sum");
  }
  return (MPI_Wtime() - begin) / allreduces;
}

// Messages that leave at once, and those of an all-to-all, most of which leave while something else is called.
static double between_a_storm(MPI_Comm over, MPI_Comm quick) {
  const int partner = (my_rank + rank_count / 2) % rank_count;
  const int part = storm_bytes / rank_count;
  MPI_Request requests[rounds * (2 * in_flight + 1)];
  char* sent = allocate(storm_bytes);
  char* received[rounds * in_flight];
  char* gathered[rounds];
  int count = 0;
  fill_bytes(sent, storm_bytes, my_rank);
  for (int i = 0; i < rounds * in_flight; ++i) {
    received[i] = allocate(storm_bytes);
    MPI_Irecv(received[i], storm_bytes, MPI_BYTE, partner, i, over, &requests[count++]);
    MPI_Isend(sent, storm_bytes, MPI_BYTE, partner, i, over, &requests[count++]);
  }
  for (int i = 0; i < rounds; ++i) {
    gathered[i] = allocate((size_t)part * rank_count);
    MPI_Iallgather(sent, part, MPI_BYTE, gathered[i], part, MPI_BYTE, over, &requests[count++]);
  }
  const double each = reduce_all(quick);
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < rounds * in_flight; ++i) require_bytes(received[i], storm_bytes, partner, "the storm");
  for (int rank = 0; rank < rank_count; ++rank) {
    require_bytes(gathered[rounds - 1] + (size_t)part * rank, part, rank, "what was gathered");
  }
  return each;
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  REQUIRE_EQUAL(argc, 3, "the number of arguments and one");
  MPI_Comm quick = with_class(argv[1]), over = with_class(argv[2]);
  MPI_Barrier(MPI_COMM_WORLD);
  const double each = between_a_storm(over, quick);
  MPI_Comm_free(&quick);
  MPI_Comm_free(&over);
  // The numbers of freed communicators are given to new ones, which have no class.
  MPI_Comm again;
  MPI_Comm_dup(MPI_COMM_WORLD, &again);
  MPI_Barrier(again);
  MPI_Comm_free(&again);
  if (my_rank == 0) printf("allreduce %.3f us\n", each * 1e6);
  return check_end("comm_class");
}
