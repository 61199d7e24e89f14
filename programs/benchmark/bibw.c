// Bandwidth in both directions at once between rank 0 and the last rank; bytes of both directions count.
#include "pair.h"

static void exchange_window(struct window* window) {
  int posted = post_sends(window, post_receives(window, 0));
  MPI_Waitall(posted, window->requests, MPI_STATUSES_IGNORE);
  char out[4] = {0}, in[4];
  if (sends) MPI_Recv(in, 4, MPI_CHAR, peer, 101, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (!sends) MPI_Send(out, 4, MPI_CHAR, peer, 101, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  pair_defaults();
  read_options(argc, argv, "W", help_of_window);
  one_pair();
  if (my_rank == 0) {
    printf("# MPI Bi-Directional Bandwidth Test\n%-10s%18s", "# Size", "Bandwidth (MB/s)");
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
      exchange_window(&window);
      if (repetition >= 0) seconds += MPI_Wtime() - started;
      wrong += wrong_in_window(&window, repetition);
    }
    wrong = all_wrong(wrong);
    if (my_rank == 0) {
      printf("%-10zu%18.*f", size, options.digits,
             2.0 * (double)size * options.window * options.iterations / seconds / 1e6);
      end_row(wrong);
    }
    free_window(&window);
  }
  return finish();
}
