// Half of a round trip between rank 0 and the last rank.
#include "pair.h"

static void latency_of_size(size_t size) {
  char *out = buffer_of(size), *in = buffer_of(size);
  long wrong = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  double us = half_round_trip_us(out, in, (int)size, &wrong);
  print_row(size, &us, all_wrong(wrong));
  print_each(size, each);
  free_buffer(out);
  free_buffer(in);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  pair_defaults();
  options.window = 0;
  read_options(argc, argv, "ed", HELP_OF_PLACES);
  one_pair();
  add_column("Avg Latency(us)", "mean_us", 18);
  begin_table("# MPI Latency Test");
  return run(&(struct sweep){.unit = 1, .bytes = two_buffers, .measure = latency_of_size});
}
