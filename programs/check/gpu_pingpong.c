// A ping-pong between two ranks. Arguments: device or pinned, the memory of its buffers; bytes, 8 or more; round trips.
#include "check.h"
#include "cudart.h"

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  REQUIRE(argc == 4 && atoi(argv[2]) >= 8, "arguments: device or pinned, bytes, round trips");
  const int bytes = atoi(argv[2]);
  load_cuda();
  void* buffer = NULL;
  CHECK((strcmp(argv[1], "device") == 0 ? cuda.malloc(&buffer, (size_t)bytes)
                                        : cuda.malloc_host(&buffer, (size_t)bytes)) == 0);
  CHECK(cuda.copy(buffer, "seven..", 8, cuda_any_way) == 0);
  for (int i = 0; i < atoi(argv[3]); ++i) {
    if (my_rank == 0) MPI_Send(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
    if (my_rank < 2) MPI_Recv(buffer, bytes, MPI_CHAR, 1 - my_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (my_rank == 1) MPI_Send(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
  }
  char back[8];
  CHECK(cuda.copy(back, buffer, 8, cuda_any_way) == 0 && strcmp(back, "seven..") == 0);
  return check_end("gpu_pingpong");
}
