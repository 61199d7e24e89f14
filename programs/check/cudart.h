// What the checks use of the GPU runtime that the machine has, CUDA or HIP, found as a program finds it that loads it
// itself. Words are CUDA's; what the checks use of the two differs in the names and in what one call answers. Of Level
// Zero it has what messages need (level_zero_as_cuda.h), and nothing of events and addresses.
#pragma once

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "level_zero_as_cuda.h"

enum { cuda_any_way = 4, cuda_no_device = 100, cuda_invalid_device = 101, cuda_not_ready = 600 };

#define CHECK(condition) REQUIRE(condition, "%s", #condition)

typedef struct {
  char bytes[64];
} cuda_handle;

static struct {
  int (*count)(int*);
  int (*set)(int);
  int (*pci)(char*, int, int);
  int (*attribute)(int*, int, int);
  int (*at_pci)(int*, const char*);
  int (*malloc)(void**, size_t);
  int (*malloc_host)(void**, size_t);
  int (*malloc_managed)(void**, size_t, unsigned);
  int (*free)(void*);
  int (*copy)(void*, const void*, size_t, int);
  int (*copy_async)(void*, const void*, size_t, int, void*);
  int (*copy_rows)(void*, size_t, const void*, size_t, size_t, size_t, int);
  int (*fill)(void*, int, size_t);
  int (*synchronize)(void);
  int (*stream)(void**);
  int (*stream_query)(void*);
  int (*stream_synchronize)(void*);
  int (*stream_wait)(void*, void*, unsigned);
  int (*event)(void**);
  int (*record)(void*, void*);
  int (*event_query)(void*);
  int (*elapsed)(float*, void*, void*);
  int (*show)(cuda_handle*, void*);
  int (*open)(void**, cuda_handle, unsigned);
  int (*close)(void*);
  int pci_bus;     // the attribute
  int (*missing)(void);
  int wrong_free;  // what freeing pinned memory as a device's answers
} cuda;

static inline void* cuda_symbol(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == NULL) {
    printf("no %s\n", name);
    exit(1);
  }
  return found;
}

static inline void load_level_zero_as_cuda(void) {
  load_level_zero();
  cuda.count = ze_cuda_count;
  cuda.set = ze_cuda_set;
  cuda.malloc = ze_cuda_malloc;
  cuda.malloc_host = ze_cuda_malloc_host;
  cuda.malloc_managed = ze_cuda_malloc_managed;
  cuda.free = ze_cuda_free;
  cuda.copy = ze_cuda_copy;
  cuda.copy_async = ze_cuda_copy_async;
  cuda.fill = ze_cuda_fill;
  cuda.synchronize = ze_cuda_synchronize;
  cuda.stream = ze_cuda_stream;
  cuda.stream_synchronize = ze_cuda_stream_synchronize;
  cuda.close = ze_cuda_close;
}

static inline void load_cuda(void) {
  const char* gpus = getenv("DRYFLY_GPU");
  if (gpus != NULL && strstr(gpus, "runtime=level-zero") != NULL) {
    load_level_zero_as_cuda();
    return;
  }
  const int hip = gpus != NULL && strstr(gpus, "runtime=hip") != NULL;
  void* library = dlopen(hip ? "libamdhip64.so.6" : "libcudart.so.12", RTLD_NOW);
  if (library == NULL) {
    printf("%s\n", dlerror());
    exit(1);
  }
  cuda.pci_bus = hip ? 67 : 33;
  cuda.wrong_free = hip ? 17 : 1;
#define CUDA_FIND(field, cuda_name, hip_name) *(void**)&cuda.field = cuda_symbol(library, hip ? hip_name : cuda_name)
  CUDA_FIND(count, "cudaGetDeviceCount", "hipGetDeviceCount");
  CUDA_FIND(set, "cudaSetDevice", "hipSetDevice");
  CUDA_FIND(pci, "cudaDeviceGetPCIBusId", "hipDeviceGetPCIBusId");
  CUDA_FIND(attribute, "cudaDeviceGetAttribute", "hipDeviceGetAttribute");
  CUDA_FIND(at_pci, "cudaDeviceGetByPCIBusId", "hipDeviceGetByPCIBusId");
  CUDA_FIND(malloc, "cudaMalloc", "hipMalloc");
  CUDA_FIND(malloc_host, "cudaMallocHost", "hipMallocHost");
  CUDA_FIND(malloc_managed, "cudaMallocManaged", "hipMallocManaged");
  CUDA_FIND(free, "cudaFree", "hipFree");
  CUDA_FIND(copy, "cudaMemcpy", "hipMemcpy");
  CUDA_FIND(copy_async, "cudaMemcpyAsync", "hipMemcpyAsync");
  CUDA_FIND(copy_rows, "cudaMemcpy2D", "hipMemcpy2D");
  CUDA_FIND(fill, "cudaMemset", "hipMemset");
  CUDA_FIND(synchronize, "cudaDeviceSynchronize", "hipDeviceSynchronize");
  CUDA_FIND(stream, "cudaStreamCreate", "hipStreamCreate");
  CUDA_FIND(stream_query, "cudaStreamQuery", "hipStreamQuery");
  CUDA_FIND(stream_synchronize, "cudaStreamSynchronize", "hipStreamSynchronize");
  CUDA_FIND(stream_wait, "cudaStreamWaitEvent", "hipStreamWaitEvent");
  CUDA_FIND(event, "cudaEventCreate", "hipEventCreate");
  CUDA_FIND(record, "cudaEventRecord", "hipEventRecord");
  CUDA_FIND(event_query, "cudaEventQuery", "hipEventQuery");
  CUDA_FIND(elapsed, "cudaEventElapsedTime", "hipEventElapsedTime");
  CUDA_FIND(missing, "cudaGraphCreate", "hipGraphCreate");
  CUDA_FIND(show, "cudaIpcGetMemHandle", "hipIpcGetMemHandle");
  CUDA_FIND(open, "cudaIpcOpenMemHandle", "hipIpcOpenMemHandle");
  CUDA_FIND(close, "cudaIpcCloseMemHandle", "hipIpcCloseMemHandle");
#undef CUDA_FIND
}
