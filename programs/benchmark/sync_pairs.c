// Synchronous sends of all pairs at once, from the first half of the ranks to the second, 16 of each pair under way
// (-W): each is over when its receive has been found. The latency is the time of a window over its messages, the mean
// over pairs; the bandwidth is that of all pairs together, by the slowest.
#include "pair.h"

static void exchange(struct window* window) {
  int posted = options.window;
  if (!sends) post_receives(window, 0);
  for (int k = 0; sends && k < options.window; ++k)
    MPI_Issend(window->out + (size_t)k * window->step, (int)window->bytes, MPI_CHAR, peer, 100, MPI_COMM_WORLD,
               &window->requests[k]);
  MPI_Waitall(posted, window->requests, MPI_STATUSES_IGNORE);
}

static void rate_of_size(size_t size) {
  struct window window = make_window(size);
  double seconds = 0;
  long wrong = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int repetition = -options.warmup; peer >= 0 && repetition < options.iterations; ++repetition) {
    fill_window(&window, repetition);
    const double started = MPI_Wtime();
    exchange(&window);
    if (repetition >= 0) seconds += MPI_Wtime() - started;
    if (!sends) wrong += wrong_in_window(&window, repetition);
  }
  if (!sends) seconds = 0;
  double sum = 0, most = 0;
  MPI_Reduce(&seconds, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  MPI_Reduce(&seconds, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  wrong = all_wrong(wrong);
  const double messages = (double)options.window * options.iterations;  // of a pair
  print_row(size, (double[]){sum / pairs / messages * 1e6, messages * pairs * (double)size / most / 1e6}, wrong);
  free_window(&window);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  pair_defaults();
  options.window = 16;
  read_options(argc, argv, "Wpd",
               "  -W, --window-size N           messages of a pair under way at once (16)\n"
               "  -p, --pairs N                 pairs of ranks (all)\n" HELP_OF_PLACES);
  many_pairs();
  add_column("Avg Latency(us)", "mean_us", 18);
  add_column("MB/s", "bandwidth_mb_per_s", 18);
  begin_table("# MPI Synchronous Pairs Test\n# [ pairs: %d ] [ window size: %d ]", pairs, options.window);
  return run(&(struct sweep){.unit = 1, .bytes = window_bytes, .measure = rate_of_size});
}
