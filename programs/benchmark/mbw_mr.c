// Bandwidth and message rate of all pairs at once, from the first half of the ranks to the second. After the
// warm-up all ranks meet; from there one clock runs over all repetitions, from the first sender's start to the last
// one's end. Where ranks have no clock in common (computers of a real cluster) it is the slowest sender's own.
// (A sum of the senders' own windows would count what a node can carry twice: while one waits, another sends.)
#include "pair.h"

static void rate_of_size(size_t size) {
  struct window window = make_window(size);
  double started = 0, checking = 0;
  long wrong = 0;
  for (int repetition = -options.warmup; repetition < options.iterations; ++repetition) {
    if (repetition == 0) {
      MPI_Barrier(MPI_COMM_WORLD);
      started = MPI_Wtime();
      checking = 0;
    }
    if (peer < 0) continue;
    double began = MPI_Wtime();
    fill_window(&window, repetition);
    checking += MPI_Wtime() - began;
    send_window(&window);
    if (!sends) wrong += wrong_in_window(&window, repetition);
  }
  double ended = MPI_Wtime() - checking;
  double own[4] = {-1e300, -1e300, -1e300, 0}, most[4];  // of the senders: minus start, start, end, duration
  if (sends) own[0] = -started, own[1] = started, own[2] = ended, own[3] = ended - started;
  MPI_Reduce(own, most, 4, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  wrong = all_wrong(wrong);
  if (my_rank == 0) {
    int one_clock = most[1] + most[0] < 1e-3;  // they left the barrier within a millisecond
    double seconds = one_clock ? most[2] + most[0] : most[3];
    double messages = (double)pairs * options.window * options.iterations / seconds;
    print_row(size, (double[]){messages * (double)size / 1e6, messages}, wrong);
  }
  free_window(&window);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  pair_defaults();
  read_options(argc, argv, "Wpd",
               "  -W, --window-size N           messages under way at once (64)\n"
               "  -p, --pairs N                 pairs of ranks (all)\n" HELP_OF_PLACES);
  many_pairs();
  add_column("MB/s", "bandwidth_mb_per_s", 18);
  add_column("Messages/s", "messages_per_s", 20);
  begin_table("# MPI Multiple Bandwidth / Message Rate Test\n# [ pairs: %d ] [ window size: %d ]", pairs,
              options.window);
  return run(&(struct sweep){.unit = 1, .bytes = window_bytes, .measure = rate_of_size});
}
