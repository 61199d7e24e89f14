// Each rank's message reaches every rank.
#include "collective.h"

static void call(void) { MPI_Allgather(to_send, count, MPI_CHAR, received, count, MPI_CHAR, MPI_COMM_WORLD); }

int main(int argc, char** argv) {
  begin(&argc, &argv);
  collective = (struct collective){.title = "Allgather", .unit = 1, .call = call, .sends = 1, .receives = rank_count};
  return measure_collective(argc, argv, 1);
}
