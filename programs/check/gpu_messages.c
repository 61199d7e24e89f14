// Messages between buffers on GPUs: contiguous, with gaps, reduced and put. Each is sent from memory of one kind and
// compared on the host after a copy back. Arguments: device, pinned or managed; how many devices there are, 0: some;
// contiguous, where the library has neither types with gaps on devices nor windows. Prints half round trips.
#include "check.h"
#include "cudart.h"

static const char* kind = "device";

static void* gpu_memory(size_t bytes) {
  void* pointer = NULL;
  const int code = strcmp(kind, "pinned") == 0    ? cuda.malloc_host(&pointer, bytes)
                   : strcmp(kind, "managed") == 0 ? cuda.malloc_managed(&pointer, bytes, 1)
                                                  : cuda.malloc(&pointer, bytes);
  CHECK(code == 0 && pointer != NULL);
  return pointer;
}

static void messages(int rank) {
  static const int counts[] = {1, 16, 100, 4096, 20000, 300000};
  for (unsigned i = 0; i < sizeof counts / sizeof *counts; ++i) {
    const int count = counts[i];
    const size_t bytes = (size_t)count * sizeof(int);
    int* host = malloc(bytes);
    int* buffer = gpu_memory(bytes);
    for (int k = 0; k < count; ++k) host[k] = rank == 0 ? 7 * k + count : -1;
    CHECK(cuda.copy(buffer, host, bytes, cuda_any_way) == 0);
    if (rank == 0) MPI_Send(buffer, count, MPI_INT, 1, 5, MPI_COMM_WORLD);
    if (rank == 1) MPI_Recv(buffer, count, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(cuda.copy(host, buffer, bytes, cuda_any_way) == 0);
    for (int k = 0; k < count && rank == 1; ++k) CHECK(host[k] == 7 * k + count);
    CHECK(cuda.free(buffer) ==
          (strcmp(kind, "pinned") == 0 ? cuda.wrong_free : 0));  // pinned memory has a call of its own
    free(host);
  }
}

static void vectors(int rank) {
  enum { blocks = 500, length = 3, stride = 7 };
  static int host[blocks * stride];
  MPI_Datatype type;
  MPI_Type_vector(blocks, length, stride, MPI_INT, &type);
  MPI_Type_commit(&type);
  int* buffer = gpu_memory(sizeof host);
  for (int k = 0; k < blocks * stride; ++k) host[k] = rank == 0 ? k : -1;
  CHECK(cuda.copy(buffer, host, sizeof host, cuda_any_way) == 0);
  if (rank == 0) MPI_Send(buffer, 1, type, 1, 6, MPI_COMM_WORLD);
  if (rank == 1) MPI_Recv(buffer, 1, type, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  CHECK(cuda.copy(host, buffer, sizeof host, cuda_any_way) == 0);
  for (int k = 0; k < blocks * stride && rank == 1; ++k) CHECK(host[k] == (k % stride < length ? k : -1));
  MPI_Type_free(&type);
}

static void reductions(int rank, int size) {
  enum { count = 10000 };
  static double host[count];
  double* from = gpu_memory(sizeof host);
  double* to = gpu_memory(sizeof host);
  for (int k = 0; k < count; ++k) host[k] = rank + k;
  CHECK(cuda.copy(from, host, sizeof host, cuda_any_way) == 0);
  MPI_Allreduce(from, to, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  CHECK(cuda.copy(host, to, sizeof host, cuda_any_way) == 0);
  for (int k = 0; k < count; ++k) CHECK(host[k] == size * (size - 1) / 2.0 + (double)size * k);
}

static void one_sided(int rank) {
  enum { count = 5000 };
  static int host[count];
  int* window = gpu_memory(sizeof host);
  int* from = gpu_memory(sizeof host);
  for (int k = 0; k < count; ++k) host[k] = rank == 0 ? 3 * k : -1;
  CHECK(cuda.copy(from, host, sizeof host, cuda_any_way) == 0);
  MPI_Win win;
  MPI_Win_create(window, sizeof host, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_fence(0, win);
  if (rank == 0) MPI_Put(from, count, MPI_INT, 1, 0, count, MPI_INT, win);
  MPI_Win_fence(0, win);
  CHECK(cuda.copy(host, window, sizeof host, cuda_any_way) == 0);
  for (int k = 0; k < count && rank == 1; ++k) CHECK(host[k] == 3 * k);
  MPI_Win_free(&win);
}

static double half_round_trip(int rank, int bytes) {
  enum { rounds = 20 };
  void* buffer = gpu_memory((size_t)bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < rounds && rank < 2; ++i) {
    if (rank == 0) MPI_Send(buffer, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(buffer, bytes, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(buffer, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
  }
  return (MPI_Wtime() - begin) / (2 * rounds);
}

int main(int argc, char** argv) {
  int devices = 0;
  check_begin(&argc, &argv);
  if (argc > 1) kind = argv[1];
  load_cuda();
  REQUIRE(cuda.count(&devices) == 0 && devices > 0, "no device");
  REQUIRE_EQUAL(devices, argc > 2 && atoi(argv[2]) > 0 ? atoi(argv[2]) : devices, "the number of devices");
  CHECK(cuda.set(devices) == cuda_invalid_device);
  CHECK(cuda.set(my_rank % devices) == 0);
  messages(my_rank);
  const int only_contiguous = argc > 3 && strcmp(argv[3], "contiguous") == 0;
  if (!only_contiguous) vectors(my_rank);
  reductions(my_rank, rank_count);
  if (!only_contiguous) one_sided(my_rank);
  for (int bytes = 8; bytes <= 4 << 20; bytes *= 8) {
    const double seconds = half_round_trip(my_rank, bytes);
    if (my_rank == 0) printf("%d bytes %.3f us\n", bytes, seconds * 1e6);
  }
  return check_end("gpu_messages");
}
