// The time of a barrier.
#include "collective.h"

static void call(void) { MPI_Barrier(MPI_COMM_WORLD); }

int main(int argc, char** argv) {
  begin(&argc, &argv);
  collective = (struct collective){.title = "Barrier", .unit = 1, .call = call};
  return measure_collective(argc, argv, 0);
}
