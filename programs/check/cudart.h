// What the checks use of the CUDA runtime, found as a program finds it that loads it itself.
#pragma once

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { cuda_any_way = 4, cuda_no_device = 100, cuda_invalid_device = 101, cuda_not_ready = 600 };

#define CHECK(condition) REQUIRE(condition, "%s", #condition)

static struct {
  int (*count)(int*);
  int (*set)(int);
  int (*malloc)(void**, size_t);
  int (*malloc_host)(void**, size_t);
  int (*malloc_managed)(void**, size_t, unsigned);
  int (*free)(void*);
  int (*copy)(void*, const void*, size_t, int);
  int (*copy_async)(void*, const void*, size_t, int, void*);
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
} cuda;

static inline void* cuda_symbol(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == NULL) {
    printf("no %s\n", name);
    exit(1);
  }
  return found;
}

static inline void load_cuda(void) {
  void* library = dlopen("libcudart.so.12", RTLD_NOW);
  if (library == NULL) {
    printf("%s\n", dlerror());
    exit(1);
  }
#define CUDA_FIND(field, name) *(void**)&cuda.field = cuda_symbol(library, name)
  CUDA_FIND(count, "cudaGetDeviceCount");
  CUDA_FIND(set, "cudaSetDevice");
  CUDA_FIND(malloc, "cudaMalloc");
  CUDA_FIND(malloc_host, "cudaMallocHost");
  CUDA_FIND(malloc_managed, "cudaMallocManaged");
  CUDA_FIND(free, "cudaFree");
  CUDA_FIND(copy, "cudaMemcpy");
  CUDA_FIND(copy_async, "cudaMemcpyAsync");
  CUDA_FIND(fill, "cudaMemset");
  CUDA_FIND(synchronize, "cudaDeviceSynchronize");
  CUDA_FIND(stream, "cudaStreamCreate");
  CUDA_FIND(stream_query, "cudaStreamQuery");
  CUDA_FIND(stream_synchronize, "cudaStreamSynchronize");
  CUDA_FIND(stream_wait, "cudaStreamWaitEvent");
  CUDA_FIND(event, "cudaEventCreate");
  CUDA_FIND(record, "cudaEventRecord");
  CUDA_FIND(event_query, "cudaEventQuery");
  CUDA_FIND(elapsed, "cudaEventElapsedTime");
#undef CUDA_FIND
}
