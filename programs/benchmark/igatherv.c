// Each rank's message reaches rank 0, which is told the size and place of each, while the ranks work.
#include "places.h"
#include "nonblocking.h"

static void begin_gather(MPI_Request* request) {
  MPI_Igatherv(to_send, count, MPI_CHAR, received, counts, places, MPI_CHAR, 0, MPI_COMM_WORLD, request);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  begin_places();
  collective = (struct collective){
      .title = "Igatherv", .unit = 1, .prepare = place_all, .sends = 1, .receives = my_rank == 0 ? rank_count : 0};
  return measure_nonblocking(argc, argv, begin_gather);
}
