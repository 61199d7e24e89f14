// Communicators made from groups, without a parent: of all ranks, of the even and the odd ones at the same time and by
// the same name, of one rank, again by a name that was used before, and an intercommunicator of two groups. Ranks come
// to each at different instants. MPI 4.
#include "check.h"

static MPI_Comm of_group(MPI_Group group, const char* name) {
  MPI_Comm comm;
  MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  return comm;
}

static void require_sum(MPI_Comm comm, int size, int sum, const char* what) {
  int actual_size, actual_sum;
  MPI_Comm_size(comm, &actual_size);
  REQUIRE_EQUAL(actual_size, size, what);
  MPI_Allreduce(&my_rank, &actual_sum, 1, MPI_INT, MPI_SUM, comm);
  REQUIRE_EQUAL(actual_sum, sum, what);
  MPI_Comm_free(&comm);
}

static void be_late(int rank) {
  double end = MPI_Wtime() + 1e-5 * rank;
  while (MPI_Wtime() < end) continue;
}

static MPI_Group half_of(MPI_Group all, int first) {
  MPI_Group half;
  MPI_Group_range_incl(all, 1, &(int[]){first, rank_count - 1 - (rank_count - 1 - first) % 2, 2}, &half);
  return half;
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  MPI_Group all, own, other, self;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Comm_group(MPI_COMM_SELF, &self);
  own = half_of(all, my_rank % 2);
  other = half_of(all, 1 - my_rank % 2);
  int own_size, other_size, all_sum = rank_count * (rank_count - 1) / 2, own_sum = 0;
  MPI_Group_size(own, &own_size);
  MPI_Group_size(other, &other_size);
  for (int rank = my_rank % 2; rank < rank_count; rank += 2) own_sum += rank;

  for (int round = 0; round < 3; ++round) {
    be_late((my_rank + round) % rank_count);
    require_sum(of_group(all, "all"), rank_count, all_sum, "a communicator of all ranks");
    be_late(my_rank);
    require_sum(of_group(own, "half"), own_size, own_sum, "a communicator of half the ranks");
  }
  require_sum(of_group(self, "self"), 1, my_rank, "a communicator of one rank");

  MPI_Comm both;
  int remote_size, remote_sum;
  MPI_Intercomm_create_from_groups(own, 0, other, 0, "both", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &both);
  MPI_Comm_remote_size(both, &remote_size);
  REQUIRE_EQUAL(remote_size, other_size, "the remote size of an intercommunicator");
  MPI_Allreduce(&my_rank, &remote_sum, 1, MPI_INT, MPI_SUM, both);
  REQUIRE_EQUAL(remote_sum, all_sum - own_sum, "the sum over the remote group");
  MPI_Comm_free(&both);

  MPI_Group_free(&all);
  MPI_Group_free(&own);
  MPI_Group_free(&other);
  MPI_Group_free(&self);
  return check_end("groups");
}
