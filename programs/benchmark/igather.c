// Each rank's message reaches rank 0, while the ranks work.
#include "nonblocking.h"

static void begin_gather(MPI_Request* request) {
  MPI_Igather(to_send, count, MPI_CHAR, received, count, MPI_CHAR, 0, MPI_COMM_WORLD, request);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  collective =
      (struct collective){.title = "Igather", .unit = 1, .sends = 1, .receives = my_rank == 0 ? rank_count : 0};
  return measure_nonblocking(argc, argv, begin_gather);
}
