// Each rank sends a message of its own to each rank. With -f also what all ranks together send to others in the mean
// time of the operation.
#include "collective.h"

static void call(void) { MPI_Alltoall(to_send, count, MPI_CHAR, received, count, MPI_CHAR, MPI_COMM_WORLD); }

int main(int argc, char** argv) {
  begin(&argc, &argv);
  collective = (struct collective){.title = "Alltoall",
                                   .unit = 1,
                                   .call = call,
                                   .sends = rank_count,
                                   .receives = rank_count,
                                   .moved = (double)rank_count * (rank_count - 1),
                                   .to_each = 1};
  return measure_collective(argc, argv, 1);
}
