// Every rank gets the sum of all ranks' vectors of floats.
#include "reduction.h"

static void call(void) { MPI_Allreduce(to_send, received, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }

static long wrong(int repetition) { return wrong_sums(0, count, repetition); }

int main(int argc, char** argv) {
  begin(&argc, &argv);
  collective = (struct collective){.title = "Allreduce",
                                   .unit = sizeof(float),
                                   .call = call,
                                   .sends = 1,
                                   .receives = 1,
                                   .fill = fill_values,
                                   .wrong = wrong};
  return measure_collective(argc, argv, 1);
}
