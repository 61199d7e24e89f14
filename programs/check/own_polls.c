// Rank 1 looks into its own window until rank 0 has put a number there: by MPI_Get (argument `get`) or by
// MPI_Fetch_and_op with MPI_NO_OP (`fetch`), each with a flush. Rank 0 sleeps for a virtual millisecond first and adds
// with MPI_Fetch_and_op. Prints how long rank 0's own operation took: an arrival must not wait for the looks to end.
#include <time.h>

#include "check.h"

enum { rounds = 3 };

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  REQUIRE(argc == 2, "get or fetch is needed");
  const int gets = strcmp(argv[1], "get") == 0;
  int* memory;
  MPI_Win window;
  MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  *memory = 0;
  MPI_Win_lock_all(0, window);
  MPI_Win_sync(window);
  double longest = 0;
  for (int round = 1; round <= rounds; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0) {
      nanosleep(&(struct timespec){0, 1000000}, NULL);
      const double begin = MPI_Wtime();
      int one = 1, before = -1;
      MPI_Fetch_and_op(&one, &before, MPI_INT, 1, 0, MPI_SUM, window);
      MPI_Win_flush(1, window);
      if (MPI_Wtime() - begin > longest) longest = MPI_Wtime() - begin;
      REQUIRE_EQUAL(before, round - 1, "the number before");
    } else if (my_rank == 1) {
      int found = 0, nothing = 0;
      while (found < round) {
        if (gets) {
          MPI_Get(&found, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
        } else {
          MPI_Fetch_and_op(&nothing, &found, MPI_INT, 1, 0, MPI_NO_OP, window);
        }
        MPI_Win_flush(1, window);
      }
      REQUIRE_EQUAL(found, round, "the number");
    }
  }
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  if (my_rank == 0) printf("longest %.2f us\n", longest * 1e6);
  return check_end("own_polls");
}
