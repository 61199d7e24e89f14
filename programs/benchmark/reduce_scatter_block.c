// Every rank gets a share of the sum of all ranks' vectors of floats, all shares of the size that the row names.
#include "reduction.h"

static void call(void) { MPI_Reduce_scatter_block(to_send, received, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }

static void fill_shares(int repetition) { fill_vector(count * rank_count, repetition); }

static long wrong(int repetition) { return wrong_sums(count * my_rank, count, repetition); }

int main(int argc, char** argv) {
  begin(&argc, &argv);
  collective = (struct collective){.title = "Reduce_scatter_block",
                                   .unit = sizeof(float),
                                   .call = call,
                                   .sends = rank_count,
                                   .receives = 1,
                                   .fill = fill_shares,
                                   .wrong = wrong};
  return measure_collective(argc, argv, 1);
}
