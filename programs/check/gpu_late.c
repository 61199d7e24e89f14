// Messages that are there before their receives, and others that come after them, into buffers on GPUs: what is in
// them, and how long the receive takes. Arguments: device or pinned. Prints the receives of late ones, and round trips
// of 8 B.
#include "check.h"
#include "cudart.h"

static void* gpu_memory(const char* kind, size_t bytes) {
  void* pointer = NULL;
  CHECK((strcmp(kind, "device") == 0 ? cuda.malloc(&pointer, bytes) : cuda.malloc_host(&pointer, bytes)) == 0);
  return pointer;
}

// Rank 1 is busy meanwhile; a receive that is early is posted long before.
static double receive(int bytes, int late, char* buffer, char* host) {
  const double pause = 300e-6;
  double took = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  if ((my_rank == 0) != late) {
    while (MPI_Wtime() < begin + pause) {
    }
  }
  if (my_rank == 0) {
    memset(host, late + 3, (size_t)bytes);
    CHECK(cuda.copy(buffer, host, (size_t)bytes, cuda_any_way) == 0);
    MPI_Send(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
  } else if (my_rank == 1) {
    const double posted = MPI_Wtime();
    MPI_Recv(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    took = MPI_Wtime() - posted;
    CHECK(cuda.copy(host, buffer, (size_t)bytes, cuda_any_way) == 0);
    for (int i = 0; i < bytes; ++i) CHECK(host[i] == late + 3);
  }
  return took;
}

int main(int argc, char** argv) {
  enum { longest = 1 << 18, rounds = 10 };
  check_begin(&argc, &argv);
  const char* const kind = argc > 1 ? argv[1] : "device";
  load_cuda();
  CHECK(cuda.set(0) == 0);
  char* const buffer = gpu_memory(kind, longest);
  char* const host = allocate(longest);
  for (int bytes = 8; bytes <= longest; bytes *= 8) {
    (void)receive(bytes, 0, buffer, host);
    const double late = receive(bytes, 1, buffer, host);
    if (my_rank == 1) printf("%d bytes %.4f us\n", bytes, late * 1e6);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < rounds && my_rank < 2; ++i) {
    if (my_rank == 0) MPI_Send(buffer, 8, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(buffer, 8, MPI_CHAR, 1 - my_rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (my_rank == 1) MPI_Send(buffer, 8, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
  }
  if (my_rank == 1) printf("0 bytes %.4f us\n", (MPI_Wtime() - begin) / (2 * rounds) * 1e6);
  return check_end("gpu_late");
}
