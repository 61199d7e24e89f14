// Half of a round trip of all pairs at once; the figure is the mean over the pairs.
#include "pair.h"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  pair_defaults();
  read_options(argc, argv, "p", "  -p, --pairs N                 pairs of ranks (all)\n");
  many_pairs();
  if (my_rank == 0) {
    printf("# MPI Multi Latency Test\n# [ pairs: %d ]\n%-10s%18s", pairs, "# Size", "Avg Latency(us)");
    end_head();
  }
  for (size_t size = options.least; size <= options.most && fits(size, 2 * size); size = next_size(size)) {
    char *out = buffer_of(size), *in = buffer_of(size);
    long wrong = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double us = half_round_trip_us(out, in, (int)size, &wrong), sum = 0;
    if (!sends) us = 0;
    MPI_Reduce(&us, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    wrong = all_wrong(wrong);
    if (my_rank == 0) {
      printf("%-10zu%18.*f", size, options.digits, sum / pairs);
      end_row(wrong);
    }
    free(out);
    free(in);
  }
  return finish();
}
