// Without a device the runtime says so by its own code, and crashes nowhere. What is not simulated says that.
#include "check.h"
#include "cudart.h"

int main(int argc, char** argv) {
  int devices = 7;
  void* pointer = &devices;
  check_begin(&argc, &argv);
  load_cuda();
  CHECK(cuda.count(&devices) == cuda_no_device && devices == 0);
  CHECK(cuda.set(0) == cuda_no_device);
  CHECK(cuda.malloc(&pointer, 8) == cuda_no_device);
  CHECK(cuda.malloc_host(&pointer, 8) == cuda_no_device);
  CHECK(cuda.copy(&pointer, &devices, sizeof devices, cuda_any_way) == cuda_no_device);
  CHECK(cuda.stream(&pointer) == cuda_no_device && cuda.event(&pointer) == cuda_no_device);
  CHECK(cuda.synchronize() == cuda_no_device);
  return check_end("gpu_none");
}
