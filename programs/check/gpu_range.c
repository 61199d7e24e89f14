// Rank 0 sends from a device's memory what no allocation holds, or not all of it. Argument: end (behind its last byte),
// freed, or right. What comes is not looked at.
#include <string.h>

#include "check.h"
#include "cudart.h"

enum { bytes = 1 << 20, more = 4096 };

int main(int argc, char** argv) {
  static char host[bytes + more];
  char* device = NULL;
  check_begin(&argc, &argv);
  REQUIRE(argc == 2 && rank_count == 2, "one argument and two ranks are needed");
  load_cuda();
  CHECK(cuda.malloc((void**)&device, bytes) == 0);
  if (strcmp(argv[1], "freed") == 0) CHECK(cuda.free(device) == 0);
  const int count = strcmp(argv[1], "end") == 0 ? bytes + more : bytes;
  if (my_rank == 0) MPI_Send(device, count, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
  if (my_rank == 1) MPI_Recv(host, count, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return check_end("gpu_range");
}
