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
  read_options(argc, argv, "Wed", HELP_OF_WINDOW HELP_OF_PLACES);
  one_pair();
  return measure_bandwidth("MPI Bi-Directional Bandwidth Test", 2, exchange_window);
}
