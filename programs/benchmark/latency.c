// Half of a round trip between rank 0 and the last rank.
#include "pair.h"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  pair_defaults();
  options.window = 1;
  read_options(argc, argv, "e", "");
  one_pair();
  if (my_rank == 0) {
    printf("# MPI Latency Test\n%-10s%18s", "# Size", "Avg Latency(us)");
    end_head();
  }
  for (size_t size = options.least; size <= options.most && fits(size, 2 * size); size = next_size(size)) {
    char *out = buffer_of(size), *in = buffer_of(size);
    long wrong = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double us = half_round_trip_us(out, in, (int)size, &wrong);
    wrong = all_wrong(wrong);
    if (my_rank == 0) {
      printf("%-10zu%18.*f", size, options.digits, us);
      end_row(wrong);
    }
    print_each(size, each);
    free(out);
    free(in);
  }
  return finish();
}
