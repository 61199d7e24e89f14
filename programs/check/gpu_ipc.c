// Memory of a GPU that a rank shows to the others of its node by a handle: they read and write it by copies of their
// own, which take what a copy between the two GPUs takes; on other nodes the handle is none. Two ranks on the first
// node, one on the second. Arguments: call, and what a copy between GPUs takes beside its bytes, in microseconds; the
// rate in GB/s. "dies": the owner goes away while its memory is open.
#include <math.h>
#include <signal.h>

#include "check.h"
#include "cudart.h"

enum { bytes = 1 << 20, invalid_value = 1, invalid_context = 201 };

static void give(int to, const cuda_handle* handle) {
  MPI_Send(handle, sizeof *handle, MPI_BYTE, to, 1, MPI_COMM_WORLD);
}

static cuda_handle taken(void) {
  cuda_handle handle;
  MPI_Recv(&handle, sizeof handle, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return handle;
}

static void step(void) { MPI_Barrier(MPI_COMM_WORLD); }

static void owner(int dies) {
  char *device, *other, word[8];
  cuda_handle handle, again, inside;
  void* own;
  CHECK(cuda.set(0) == 0 && cuda.malloc((void**)&other, 4096) == 0 && cuda.malloc((void**)&device, bytes) == 0);
  CHECK(cuda.fill(device, 'a', bytes) == 0 && cuda.synchronize() == 0);
  CHECK(cuda.show(&handle, device) == 0 && cuda.show(&again, device) == 0 && cuda.show(&inside, device + 9) == 0);
  CHECK(memcmp(&handle, &again, sizeof handle) == 0 && memcmp(&handle, &inside, sizeof handle) == 0);
  CHECK(cuda.open(&own, handle, 1) == invalid_context);
  for (int to = 1; to < rank_count; ++to) give(to, &handle);
  step();  // opened
  if (dies) raise(SIGKILL);
  step();  // written
  CHECK(cuda.copy(word, device + bytes - 8, 8, cuda_any_way) == 0 && memcmp(word, "written", 8) == 0);
  CHECK(cuda.free(device) == 0);
  step();  // freed
  // The next allocation has the same address, and the old handle does not lead to it.
  CHECK(cuda.malloc((void**)&device, bytes) == 0 && cuda.show(&again, device) == 0);
  CHECK(memcmp(&handle, &again, sizeof handle) != 0);
  step();
}

static void neighbour(double fixed_us, double rate) {
  const cuda_handle handle = taken();
  char *opened, *same, *mine, word[8];
  CHECK(cuda.set(1) == 0 && cuda.malloc((void**)&mine, bytes) == 0);
  CHECK(cuda.open((void**)&opened, handle, 1) == 0 && cuda.open((void**)&same, handle, 1) == 0 && same == opened);
  step();  // opened
  const double begin = MPI_Wtime();
  CHECK(cuda.copy(mine, opened, bytes, cuda_any_way) == 0 && cuda.synchronize() == 0);
  const double us = (MPI_Wtime() - begin) * 1e6, wanted_us = fixed_us + bytes / rate * 1e-3;
  REQUIRE(fabs(us - wanted_us) <= 0.2, "%.4f us, and should be %.4f", us, wanted_us);
  CHECK(cuda.copy(word, mine + bytes - 8, 8, cuda_any_way) == 0 && memcmp(word, "aaaaaaaa", 8) == 0);
  CHECK(cuda.copy(mine, opened + 1, bytes, cuda_any_way) == invalid_value);
  CHECK(cuda.free(opened) != 0);
  CHECK(cuda.copy(opened + bytes - 8, "written", 8, cuda_any_way) == 0 && cuda.synchronize() == 0);
  step();  // written
  step();  // freed
  CHECK(cuda.close(same + 8) == invalid_value && cuda.close(same) == 0 && cuda.close(opened) == 0);
  CHECK(cuda.close(opened) == invalid_value);
  step();
  CHECK(cuda.open((void**)&opened, handle, 1) == invalid_value);
}

static void elsewhere(void) {
  void* opened;
  CHECK(cuda.open(&opened, taken(), 1) == invalid_value);
  for (int i = 0; i < 4; ++i) step();
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  CHECK(argc == 4 || argc == 5);
  load_cuda();
  if (my_rank == 0) owner(argc == 5);
  if (my_rank == 1) neighbour(atof(argv[1]) + atof(argv[2]), atof(argv[3]));
  if (my_rank == 2) elsewhere();
  return check_end("gpu_ipc");
}
