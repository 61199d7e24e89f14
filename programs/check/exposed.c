/* A ring of ranks exposes a window to the left and puts into that on the right. In every second round the end of an
 * exposure is waited for, in the others it is tested for, with sleeps in between: time passes, and those who have to
 * see what a NIC has written are on another node. */
#include <time.h>

#include "check.h"

enum { rounds = 6, numbers = 16 };

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  const int right = (my_rank + 1) % rank_count, left = (my_rank + rank_count - 1) % rank_count;
  double *memory, mine[numbers];
  MPI_Win window;
  MPI_Win_allocate(sizeof mine, sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  MPI_Group all, to, from;
  MPI_Win_get_group(window, &all);
  MPI_Group_incl(all, 1, &right, &to);
  MPI_Group_incl(all, 1, &left, &from);
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < numbers; ++i) mine[i] = my_rank * 1000 + round * 100 + i;
    MPI_Win_post(from, 0, window);
    MPI_Win_start(to, 0, window);
    MPI_Put(mine, numbers, MPI_DOUBLE, right, 0, numbers, MPI_DOUBLE, window);
    MPI_Win_complete(window);
    if (round % 2 == 0) {
      MPI_Win_wait(window);
    } else {
      int over = 0;
      for (MPI_Win_test(window, &over); !over; MPI_Win_test(window, &over)) {
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
      }
    }
    for (int i = 0; i < numbers; ++i) REQUIRE_EQUAL(memory[i], left * 1000 + round * 100 + i, "a number");
  }
  MPI_Group_free(&to);
  MPI_Group_free(&from);
  MPI_Group_free(&all);
  MPI_Win_free(&window);
  check_end("exposed");
  return 0;
}
