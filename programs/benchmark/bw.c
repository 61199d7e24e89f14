// Bandwidth from rank 0 to the last rank: windows of messages, and a short answer for each window.
#include "pair.h"

int main(int argc, char** argv) {
  begin(&argc, &argv);
  pair_defaults();
  read_options(argc, argv, "Wed", HELP_OF_WINDOW HELP_OF_PLACES);
  one_pair();
  return measure_bandwidth("MPI Bandwidth Test", 1, send_window);
}
