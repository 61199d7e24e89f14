// A large accumulate of rank 0 to itself, which MPICH moves piece by piece whenever it makes progress, and then the
// message for which the others wait: `own_window receive|probe|iprobe|test`.
#include "check.h"

enum { count = 1 << 18, tag = 5 };

static void wait_for_message(const char* way) {
  int value = 0;
  int flag = 0;
  MPI_Request request;
  if (strcmp(way, "test") == 0) {
    MPI_Irecv(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, &request);
    while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  } else {
    if (strcmp(way, "probe") == 0) MPI_Probe(0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    while (strcmp(way, "iprobe") == 0 && !flag) MPI_Iprobe(0, tag, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    MPI_Recv(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  REQUIRE_EQUAL(value, 77, "the message");
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  int* window_memory = allocate(count * sizeof *window_memory);
  int* values = allocate(count * sizeof *values);
  for (int i = 0; i < count; ++i) {
    window_memory[i] = i;
    values[i] = 3 * i + 1;
  }
  MPI_Win window;
  MPI_Win_create(window_memory, count * sizeof *window_memory, sizeof *window_memory, MPI_INFO_NULL, MPI_COMM_WORLD,
                 &window);
  if (my_rank == 0) {
    for (int turn = 0; turn < 3; ++turn) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
      MPI_Accumulate(values, count, MPI_INT, 0, 0, count, MPI_INT, MPI_SUM, window);
      MPI_Win_unlock(0, window);
    }
    for (int i = 0; i < count; ++i) REQUIRE_EQUAL(window_memory[i], i + 3 * (3 * i + 1), "an element");
    int value = 77;
    for (int rank = 1; rank < rank_count; ++rank) MPI_Send(&value, 1, MPI_INT, rank, tag, MPI_COMM_WORLD);
  } else {
    wait_for_message(argc > 1 ? argv[1] : "receive");
  }
  MPI_Win_free(&window);
  free(values);
  free(window_memory);
  return check_end("own_window");
}
