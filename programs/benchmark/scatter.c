// Rank 0 sends a message of its own to each rank.
#include "collective.h"

static void call(void) { MPI_Scatter(to_send, count, MPI_CHAR, received, count, MPI_CHAR, 0, MPI_COMM_WORLD); }

int main(int argc, char** argv) {
  begin(&argc, &argv);
  collective = (struct collective){.title = "Scatter",
                                   .unit = 1,
                                   .call = call,
                                   .sends = my_rank == 0 ? rank_count : 0,
                                   .receives = 1,
                                   .to_each = 1,
                                   .from_root = 1};
  return measure_collective(argc, argv, 1);
}
