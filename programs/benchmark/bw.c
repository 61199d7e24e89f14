// Bandwidth from rank 0 to the last rank: windows of messages, and a short answer for each window.
#include "pair.h"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  pair_defaults();
  read_options(argc, argv, "W", help_of_window);
  one_pair();
  if (my_rank == 0) {
    printf("# MPI Bandwidth Test\n%-10s%18s", "# Size", "Bandwidth (MB/s)");
    end_head();
  }
  for (size_t size = options.least; size <= options.most && fits(size, window_bytes(size)); size = next_size(size)) {
    struct window window = make_window(size);
    double seconds = 0;
    long wrong = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int repetition = -options.warmup; peer >= 0 && repetition < options.iterations; ++repetition) {
      fill_window(&window, repetition);
      double started = MPI_Wtime();
      send_window(&window);
      if (repetition >= 0) seconds += MPI_Wtime() - started;
      if (!sends) wrong += wrong_in_window(&window, repetition);
    }
    wrong = all_wrong(wrong);
    if (my_rank == 0) {
      printf("%-10zu%18.*f", size, options.digits, (double)size * options.window * options.iterations / seconds / 1e6);
      end_row(wrong);
    }
    free_window(&window);
  }
  return finish();
}
