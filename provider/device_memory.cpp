#include "provider/device_memory.hpp"

#include <stdio.h>
#include <stdlib.h>

namespace dryfly::provider {

void warn_of_device_memory(std::uint32_t rank, const void* buffer) {
  static bool warned = false;
  // Of a library that `dryfly run` knows not to take such memory the wrappers of MPI tell, which know the call.
  static const bool is_told = getenv("DRYFLY_GPU_UNAWARE") != nullptr;
  if (warned || is_told || dryfly_gpu_of == nullptr) return;
  const int gpu = dryfly_gpu_of(buffer);
  if (gpu < 0) return;
  warned = true;
  fprintf(stderr,
          "dryfly: rank %u gave memory of GPU %d to an MPI library that knows nothing of GPUs; its messages are right "
          "here, and on the machine the job hangs or ends with a segmentation fault (which MPI knows of them: "
          "docs/guide/gpu.md)\n",
          rank, gpu);
}

}  // namespace dryfly::provider
