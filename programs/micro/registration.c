// What it costs that the NIC has to know a buffer: `registration [buffers=4] [bytes=1048576] [rounds=3] [anew=0]
// [huge=0]`. Rank 0 sends each of its buffers to rank 1, which has as many, and does so again in each round.
// anew=1: each buffer is freed and allocated before it is used again; huge=1: they are mapped with MAP_HUGETLB.
#define _GNU_SOURCE
#include <sys/mman.h>

#include "micro.h"

static int huge;
static size_t bytes;

static char* get(void) {
  if (!huge) return buffer_of(bytes);
  char* buffer = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  if (buffer == MAP_FAILED) micro_fail("there are no huge pages");
  memset(buffer, 1, bytes);
  return buffer;
}

static void give_back(char* buffer) {
  if (huge) {
    munmap(buffer, bytes);
  } else {
    free(buffer);
  }
}

int main(int argc, char** argv) {
  micro_begin(&argc, &argv);
  int count = argument(argc, argv, "buffers", 4, 1);
  bytes = (size_t)argument(argc, argv, "bytes", 1 << 20, 1);
  int rounds = argument(argc, argv, "rounds", 3, 1);
  int anew = argument(argc, argv, "anew", 0, 0);
  huge = argument(argc, argv, "huge", 0, 0);
  if (rank_count != 2) micro_fail("exactly 2 ranks are needed");
  char** buffers = malloc((size_t)count * sizeof *buffers);
  for (int i = 0; i < count; ++i) buffers[i] = get();
  for (int round = 0; round < rounds; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < count; ++i) {
      if (anew && round > 0) {
        give_back(buffers[i]);
        buffers[i] = get();
      }
      if (my_rank == 0) {
        MPI_Send(buffers[i], (int)bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
      } else {
        MPI_Recv(buffers[i], (int)bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
    }
    if (my_rank == 0) printf("registration round %d: %.3f us a message\n", round, (MPI_Wtime() - start) / count * 1e6);
  }
  for (int i = 0; i < count; ++i) give_back(buffers[i]);
  free(buffers);
  MPI_Finalize();
}
