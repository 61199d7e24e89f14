// What a message has that is sent before anybody waits for the work on its buffer. Rank 0 sends to rank 1 what it
// copies and fills: by calls that take no stream it is there; by asynchronous ones, of the default stream too, it is
// there once the program has waited, and before that only where a NIC reaches the memory for the first time.
#include "check.h"
#include "cudart.h"

enum { bytes = 1 << 22 };

static void send_from(void* device) { CHECK(MPI_Send(device, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD) == MPI_SUCCESS); }

// All of the message, or of what is in the buffer when it ends.
static int received_by(char* host) {
  MPI_Recv(host, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 1; i < bytes; ++i) CHECK(host[i] == host[0]);
  return host[0];
}

static void send(void) {
  void *device = NULL, *host = NULL;
  CHECK(cuda.malloc(&device, bytes) == 0 && cuda.malloc_host(&host, bytes) == 0);
  CHECK(cuda.fill(device, 1, bytes) == 0 && cuda.synchronize() == 0);
  memset(host, 2, bytes);
  CHECK(cuda.copy_async(device, host, bytes, cuda_any_way, NULL) == 0);
  send_from(device);
  memset(host, 3, bytes);
  CHECK(cuda.copy_async(device, host, bytes, cuda_any_way, NULL) == 0);
  send_from(device);
  CHECK(cuda.synchronize() == 0);
  send_from(device);
  CHECK(cuda.fill(device, 4, bytes) == 0);
  send_from(device);
  memset(host, 5, bytes);
  CHECK(cuda.copy(device, host, bytes, cuda_any_way) == 0);
  send_from(device);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  load_cuda();
  if (my_rank == 0) send();
  if (my_rank == 1) {
    char* const host = malloc(bytes);
    const int seen[] = {2, 2, 3, 4, 5};
    for (int i = 0; i < 5; ++i) CHECK(received_by(host) == seen[i]);
    free(host);
  }
  return check_end("gpu_early");
}
