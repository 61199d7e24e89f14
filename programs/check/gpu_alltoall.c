// Alltoalls of all ranks, each on the GPU of its number on the node. Arguments: device or pinned, the memory of the
// buffers; bytes for each rank; how many alltoalls.
#include "check.h"
#include "cudart.h"

static char* gpu_memory(const char* kind, size_t bytes) {
  void* pointer = NULL;
  CHECK((strcmp(kind, "device") == 0 ? cuda.malloc(&pointer, bytes) : cuda.malloc_host(&pointer, bytes)) == 0);
  return pointer;
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  REQUIRE(argc == 4 && atoi(argv[2]) > 0, "arguments: device or pinned, bytes, alltoalls");
  const int block = atoi(argv[2]);
  const size_t bytes = (size_t)block * (size_t)rank_count;
  load_cuda();
  int devices = 0;
  CHECK(cuda.count(&devices) == 0 && devices > 0 && cuda.set(my_rank % devices) == 0);
  char *from = gpu_memory(argv[1], bytes), *to = gpu_memory(argv[1], bytes), *host = malloc(bytes);
  for (size_t at = 0; at < bytes; ++at) host[at] = (char)((my_rank + (int)(at / (size_t)block)) % 251);
  CHECK(cuda.copy(from, host, bytes, cuda_any_way) == 0);
  for (int i = 0; i < atoi(argv[3]); ++i) MPI_Alltoall(from, block, MPI_CHAR, to, block, MPI_CHAR, MPI_COMM_WORLD);
  CHECK(cuda.copy(host, to, bytes, cuda_any_way) == 0);
  for (size_t at = 0; at < bytes; ++at) CHECK(host[at] == (char)((my_rank + (int)(at / (size_t)block)) % 251));
  free(host);
  return check_end("gpu_alltoall");
}
