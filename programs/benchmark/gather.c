// Each rank's message reaches rank 0.
#include "collective.h"

static void call(void) { MPI_Gather(to_send, count, MPI_CHAR, received, count, MPI_CHAR, 0, MPI_COMM_WORLD); }

int main(int argc, char** argv) {
  begin(&argc, &argv);
  collective = (struct collective){
      .title = "Gather", .unit = 1, .call = call, .sends = 1, .receives = my_rank == 0 ? rank_count : 0};
  return measure_collective(argc, argv, 1);
}
