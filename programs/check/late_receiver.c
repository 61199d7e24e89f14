// Rank 1 has posted all receives and computes for a second of virtual time. Meanwhile rank 0 sends it more messages
// than its ring has room for, and behind them a large one: that send is complete when the data is there, not when rank
// 1 comes back. Argument: how rank 1 waits afterwards, "wait" or "test".
#include <unistd.h>

#include "check.h"

enum { small_count = 600, large_bytes = 1 << 20 };

static int small[small_count];
static char large[large_bytes];
static MPI_Request requests[small_count + 1];

static void send_all(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  volatile double sum = 0;  // rank 1 is at its gate before anything arrives
  for (int turn = 0; turn < 100 * 1000 * 1000; ++turn) sum += turn;
  const double start = MPI_Wtime();
  for (int i = 0; i < small_count; ++i) MPI_Send(&i, 1, MPI_INT, 1, 1, MPI_COMM_WORLD);
  memset(large, 7, large_bytes);
  MPI_Send(large, large_bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
  const double took = MPI_Wtime() - start;
  REQUIRE(took < 0.1, "the sends took %g s: until the receiver came back", took);
}

static void receive_all(int tests) {
  for (int i = 0; i < small_count; ++i) MPI_Irecv(&small[i], 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &requests[i]);
  MPI_Irecv(large, large_bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &requests[small_count]);
  MPI_Barrier(MPI_COMM_WORLD);
  usleep(1000000);
  if (tests) {
    for (int done = 0; !done;) MPI_Testall(small_count + 1, requests, &done, MPI_STATUSES_IGNORE);
  } else {
    MPI_Waitall(small_count + 1, requests, MPI_STATUSES_IGNORE);
  }
  for (int i = 0; i < small_count; ++i) {
    REQUIRE_EQUAL(small[i], i, "a small message");
  }
  for (int i = 0; i < large_bytes; ++i) {
    REQUIRE_EQUAL(large[i], 7, "a byte of the large message");
  }
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  REQUIRE(rank_count == 2, "this program is one of two ranks");
  if (my_rank == 0) send_all();
  if (my_rank == 1) receive_all(argc > 1 && strcmp(argv[1], "test") == 0);
  return check_end("late_receiver");
}
