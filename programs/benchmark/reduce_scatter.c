// Every rank gets its share of the sum of all ranks' vectors of floats. The size is that of the whole vector; the first
// ranks get one element more where it cannot be divided.
#include "reduction.h"

static int* shares;

static void divide(void) {
  for (int rank = 0; rank < rank_count; ++rank) shares[rank] = count / rank_count + (rank < count % rank_count);
}

static void call(void) { MPI_Reduce_scatter(to_send, received, shares, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }

static long wrong(int repetition) {
  int first = 0;
  for (int rank = 0; rank < my_rank; ++rank) first += shares[rank];
  return wrong_sums(first, shares[my_rank], repetition);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  shares = malloc(sizeof *shares * (size_t)rank_count);
  collective = (struct collective){.title = "Reduce_scatter",
                                   .unit = sizeof(float),
                                   .prepare = divide,
                                   .call = call,
                                   .sends = 1,
                                   .receives = 1,
                                   .fill = fill_values,
                                   .wrong = wrong};
  int status = measure_collective(argc, argv, 1);
  free(shares);
  return status;
}
