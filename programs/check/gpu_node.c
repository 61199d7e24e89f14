// Messages between GPUs of a node: what is sent from memory of rank 0's comes to memory of rank 1's, and as many more
// bytes take as much longer as the rate says. Arguments: the GPU of each of the two ranks, or host; GB/s between them.
// Prints the half round trip of 8 bytes.
#include <math.h>

#include "check.h"
#include "cudart.h"

enum { most = 4 << 20, rounds = 4 };

static double half_round_trip(char* buffer, int bytes) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < rounds; ++i) {
    if (my_rank == 0) MPI_Send(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(buffer, bytes, MPI_CHAR, 1 - my_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (my_rank == 1) MPI_Send(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
  }
  return (MPI_Wtime() - begin) / (2 * rounds) * 1e6;
}

static void sent_rightly(char* buffer, int bytes) {
  char* host = malloc((size_t)bytes);
  memset(host, my_rank == 0 ? 'a' + bytes % 26 : 0, (size_t)bytes);
  CHECK(cuda.copy(buffer, host, (size_t)bytes, cuda_any_way) == 0);
  if (my_rank == 0) MPI_Send(buffer, bytes, MPI_CHAR, 1, 2, MPI_COMM_WORLD);
  if (my_rank == 1) MPI_Recv(buffer, bytes, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(cuda.copy(host, buffer, (size_t)bytes, cuda_any_way) == 0);
  for (int i = 0; i < bytes; ++i) CHECK(host[i] == 'a' + bytes % 26);
  free(host);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  REQUIRE(argc == 4 && rank_count == 2, "arguments: a GPU or host for each of two ranks, GB/s between them");
  const char* mine = argv[1 + my_rank];
  const double rate = atof(argv[3]);
  char* buffer = malloc(most);
  load_cuda();
  if (strcmp(mine, "host") != 0) {
    CHECK(cuda.set(atoi(mine)) == 0 && cuda.malloc((void**)&buffer, most) == 0);
  }
  static const int sizes[] = {1, 8, 200, 4096, 4097, 100000, most};
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; ++i) sent_rightly(buffer, sizes[i]);
  const double us = half_round_trip(buffer, most) - half_round_trip(buffer, most / 2);
  const double wanted_us = most / 2 / rate * 1e-3;
  REQUIRE(fabs(us - wanted_us) <= 0.2, "%d bytes more take %.3f us, and should take %.3f", most / 2, us, wanted_us);
  const double short_us = half_round_trip(buffer, 8);
  if (my_rank == 0) printf("8 bytes %.3f us\n", short_us);
  return check_end("gpu_node");
}
