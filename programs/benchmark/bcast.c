// Rank 0's message reaches every rank.
#include "collective.h"

static void call(void) { MPI_Bcast(my_rank == 0 ? to_send : received, count, MPI_CHAR, 0, MPI_COMM_WORLD); }

int main(int argc, char** argv) {
  begin(&argc, &argv);
  collective = (struct collective){
      .title = "Broadcast", .unit = 1, .call = call, .sends = my_rank == 0, .receives = my_rank != 0, .from_root = 1};
  return measure_collective(argc, argv, 1);
}
