// Each rank sends a message of its own to each rank, which is told the size and place of each. With -f also what all
// ranks together send to others in the mean time of the operation.
#include "places.h"

static void call(void) {
  MPI_Alltoallv(to_send, counts, places, MPI_CHAR, received, counts, places, MPI_CHAR, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  begin_places();
  collective = (struct collective){.title = "Alltoallv",
                                   .unit = 1,
                                   .prepare = place_all,
                                   .call = call,
                                   .sends = rank_count,
                                   .receives = rank_count,
                                   .moved = (double)rank_count * (rank_count - 1),
                                   .to_each = 1};
  return measure_collective(argc, argv, 1);
}
