// Each rank by itself: a copy from each GPU to each other takes call and latency, and its bytes at the rate of the
// links between the two. Arguments: call and latency in microseconds, a link's rate in GB/s, and for each two GPUs how
// many links there are, row by row as digits.
#include <math.h>

#include "check.h"
#include "cudart.h"

enum { bytes = 1 << 20, most = 16 };

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  CHECK(argc == 5);
  const double fixed_us = atof(argv[1]) + atof(argv[2]), rate = atof(argv[3]);
  const char* links = argv[4];
  char *from[most], *to[most];
  int devices = 0;
  load_cuda();
  CHECK(cuda.count(&devices) == 0 && devices <= most && strlen(links) == (size_t)(devices * devices));
  for (int i = 0; i < devices; ++i) {
    CHECK(cuda.set(i) == 0 && cuda.malloc((void**)&from[i], bytes) == 0);
    CHECK(cuda.malloc((void**)&to[i], bytes) == 0 && cuda.fill(from[i], i, bytes) == 0 && cuda.synchronize() == 0);
  }
  for (int i = 0; i < devices; ++i) {
    for (int k = 0; k < devices; ++k) {
      if (i == k) continue;
      const double begin = MPI_Wtime();
      CHECK(cuda.copy(to[k], from[i], bytes, cuda_any_way) == 0 && cuda.synchronize() == 0);
      const double us = (MPI_Wtime() - begin) * 1e6;
      const double wanted_us = fixed_us + bytes / (rate * (links[i * devices + k] - '0')) * 1e-3;
      REQUIRE(fabs(us - wanted_us) <= 0.2, "from %d to %d: %.4f us, and should be %.4f", i, k, us, wanted_us);
      CHECK(to[k][bytes - 1] == i);
    }
  }
  return check_end("gpu_peers");
}
