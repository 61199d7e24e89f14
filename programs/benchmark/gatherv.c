// Each rank's message reaches rank 0, which is told the size and place of each.
#include "places.h"

static void call(void) { MPI_Gatherv(to_send, count, MPI_CHAR, received, counts, places, MPI_CHAR, 0, MPI_COMM_WORLD); }

int main(int argc, char** argv) {
  begin(&argc, &argv);
  begin_places();
  collective = (struct collective){.title = "Gatherv",
                                   .unit = 1,
                                   .prepare = place_all,
                                   .call = call,
                                   .sends = 1,
                                   .receives = my_rank == 0 ? rank_count : 0};
  return measure_collective(argc, argv, 1);
}
