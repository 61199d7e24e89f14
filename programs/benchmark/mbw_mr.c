// Bandwidth and message rate of all pairs at once, from the first half of the ranks to the second. The time is the
// mean of the senders'.
#include "pair.h"

static void print_titles(void) {
  if (my_rank != 0) return;
  printf("# MPI Multiple Bandwidth / Message Rate Test\n# [ pairs: %d ] [ window size: %d ]\n%-10s%18s%20s", pairs,
         options.window, "# Size", "MB/s", "Messages/s");
  end_head();
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  pair_defaults();
  read_options(argc, argv, "Wp",
               "  -W, --window-size N           messages under way at once (64)\n"
               "  -p, --pairs N                 pairs of ranks (all)\n");
  many_pairs();
  print_titles();
  for (size_t size = options.least; size <= options.most && fits(size, window_bytes(size)); size = next_size(size)) {
    struct window window = make_window(size);
    double seconds = 0, sum = 0;
    long wrong = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int repetition = -options.warmup; peer >= 0 && repetition < options.iterations; ++repetition) {
      fill_window(&window, repetition);
      double started = MPI_Wtime();
      send_window(&window);
      if (repetition >= 0 && sends) seconds += MPI_Wtime() - started;
      if (!sends) wrong += wrong_in_window(&window, repetition);
    }
    MPI_Reduce(&seconds, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    wrong = all_wrong(wrong);
    if (my_rank == 0) {
      double messages = (double)pairs * options.window * options.iterations / (sum / pairs);
      printf("%-10zu%18.*f%20.*f", size, options.digits, messages * (double)size / 1e6, options.digits, messages);
      end_row(wrong);
    }
    free_window(&window);
  }
  return finish();
}
