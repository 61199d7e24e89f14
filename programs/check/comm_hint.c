// A communicator with the traffic class of the argument, whatever becomes of it, and an allreduce in it.
#include "check.h"

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  REQUIRE_EQUAL(argc, 2, "the number of arguments and one");
  MPI_Comm made;
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "dryfly_traffic_class", argv[1]);
  MPI_Comm_dup(MPI_COMM_WORLD, &made);
  MPI_Comm_set_info(made, info);
  MPI_Info_free(&info);
  int sum = 0;
  MPI_Allreduce(&my_rank, &sum, 1, MPI_INT, MPI_SUM, made);
  REQUIRE_EQUAL(sum, rank_count * (rank_count - 1) / 2, "the sum");
  MPI_Comm_free(&made);
  return check_end("comm_hint");
}
