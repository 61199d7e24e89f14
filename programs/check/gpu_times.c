// What calls and copies of a CUDA runtime take: lines WHAT, BYTES MICROSECONDS, medians. Those of a real GPU are in
// gpu_times_h100.txt. For a computer that has a GPU and no MPI, compile with -DWITHOUT_MPI. Argument: how often each is
// measured; a simulated one takes the same each time.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_measured.h"

extern int cudaMalloc(void**, size_t), cudaMallocHost(void**, size_t), cudaFree(void*),
    cudaHostRegister(void*, size_t, unsigned), cudaHostUnregister(void*), cudaMemcpy(void*, const void*, size_t, int),
    cudaMemcpyAsync(void*, const void*, size_t, int, void*), cudaMemsetAsync(void*, int, size_t, void*),
    cudaDeviceSynchronize(void), cudaStreamCreateWithFlags(void**, unsigned), cudaStreamQuery(void*),
    cudaStreamSynchronize(void*), cudaStreamWaitEvent(void*, void*, unsigned),
    cudaEventCreateWithFlags(void**, unsigned), cudaEventRecord(void*, void*), cudaEventQuery(void*),
    cudaEventElapsedTime(float*, void*, void*), cudaLaunchHostFunc(void*, void (*)(void*), void*);

static void* runtime;
static void* find(const char* name) {
  void* found = dlsym(runtime, name);
  if (found == NULL) {
    printf("no %s\n", name);
    exit(1);
  }
  return found;
}

// Found once: looking for a name would be measured.
#define LET(name) __typeof__(&name) do_##name = (__typeof__(&name))find(#name)

enum { most = 64 << 20, in = 1, out = 2, within = 3, in_a_row = 32 };

// The first one warms up and does not count.
#define MEASURE(what, bytes, parts, doing, after) \
  do {                                            \
    for (int i_ = -1; i_ < rounds; ++i_) {        \
      const double begin_ = now();                \
      doing;                                      \
      if (i_ >= 0) samples[i_] = now() - begin_;  \
      after;                                      \
    }                                             \
    say(what, bytes, parts);                      \
  } while (0)

static char *device, *second, *pinned, *back, *pageable;
static void *stream, *next, *event, *ended;

static void copies_of(size_t bytes) {
  LET(cudaMemcpy);
  LET(cudaMemcpyAsync);
  LET(cudaMemsetAsync);
  LET(cudaDeviceSynchronize);
  LET(cudaStreamSynchronize);
  LET(cudaEventRecord);
  LET(cudaEventElapsedTime);
  MEASURE("copy in from pinned", bytes, 1, do_cudaMemcpy(device, pinned, bytes, in), );
  MEASURE("copy out to pinned", bytes, 1, do_cudaMemcpy(pinned, device, bytes, out), );
  MEASURE("copy in from pageable", bytes, 1, do_cudaMemcpy(device, pageable, bytes, in), do_cudaDeviceSynchronize());
  MEASURE("copy out to pageable", bytes, 1, do_cudaMemcpy(pageable, device, bytes, out), );
  MEASURE("copy within, call", bytes, 1, do_cudaMemcpy(second, device, bytes, within), do_cudaDeviceSynchronize());
  MEASURE("copy within and synchronise", bytes, 1,
          (do_cudaMemcpy(second, device, bytes, within), do_cudaDeviceSynchronize()), );
  MEASURE("copy in by a stream, call", bytes, 1, do_cudaMemcpyAsync(device, pinned, bytes, in, stream),
          do_cudaStreamSynchronize(stream));
  MEASURE("copy in by a stream and synchronise", bytes, 1,
          (do_cudaMemcpyAsync(device, pinned, bytes, in, stream), do_cudaStreamSynchronize(stream)), );
  MEASURE("copy out by a stream and synchronise", bytes, 1,
          (do_cudaMemcpyAsync(pinned, device, bytes, out, stream), do_cudaStreamSynchronize(stream)), );
  MEASURE("copy in from pageable by a stream, call", bytes, 1, do_cudaMemcpyAsync(device, pageable, bytes, in, stream),
          do_cudaStreamSynchronize(stream));
  MEASURE("copy out to pageable by a stream, call", bytes, 1, do_cudaMemcpyAsync(pageable, device, bytes, out, stream),
          do_cudaStreamSynchronize(stream));
  MEASURE("fill by a stream and synchronise", bytes, 1,
          (do_cudaMemsetAsync(second, 0, bytes, stream), do_cudaStreamSynchronize(stream)), );
  static const struct {
    const char *between, *row;
    int direction;
  } ways[] = {{"copy in, between events", "copy in, each of 32", in},
              {"copy out, between events", "copy out, each of 32", out},
              {"copy within, between events", "copy within, each of 32", within}};
  for (int way = 0; way < 3; ++way) {
    char* const to = way == 0 ? device : way == 1 ? back : second;
    const char* const from = way == 0 ? pinned : device;
    for (int i = 0; i < rounds; ++i) {
      float ms = 0;
      (void)do_cudaEventRecord(event, stream);
      (void)do_cudaMemcpyAsync(to, from, bytes, ways[way].direction, stream);
      (void)do_cudaEventRecord(ended, stream);
      (void)do_cudaStreamSynchronize(stream);
      (void)do_cudaEventElapsedTime(&ms, event, ended);
      samples[i] = (double)ms * 1e3;
    }
    say(ways[way].between, bytes, 1);
    MEASURE(
        ways[way].row, bytes, in_a_row, {
          for (int k = 0; k < in_a_row; ++k) (void)do_cudaMemcpyAsync(to, from, bytes, ways[way].direction, stream);
          (void)do_cudaStreamSynchronize(stream);
        }, );
  }
  MEASURE(
      "in and out at once, each pair of 16", bytes, in_a_row / 2, {
        for (int k = 0; k < in_a_row / 2; ++k) {
          (void)do_cudaMemcpyAsync(device, pinned, bytes, in, stream);
          (void)do_cudaMemcpyAsync(back, second, bytes, out, next);
        }
        (void)do_cudaStreamSynchronize(stream);
        (void)do_cudaStreamSynchronize(next);
      }, );
}

static void nothing(void* argument) { (void)argument; }

static void calls(void) {
  LET(cudaStreamQuery);
  LET(cudaStreamSynchronize);
  LET(cudaStreamWaitEvent);
  LET(cudaEventRecord);
  LET(cudaEventQuery);
  LET(cudaMemcpyAsync);
  LET(cudaLaunchHostFunc);
  LET(cudaMalloc);
  LET(cudaFree);
  LET(cudaHostRegister);
  LET(cudaHostUnregister);
  void* taken = NULL;
  MEASURE("ask an idle stream", 0, 1, do_cudaStreamQuery(stream), );
  MEASURE("synchronise an idle stream", 0, 1, do_cudaStreamSynchronize(stream), );
  MEASURE("record an event", 0, 1, do_cudaEventRecord(event, stream), do_cudaStreamSynchronize(stream));
  MEASURE("ask an event", 0, 1, do_cudaEventQuery(event), );
  MEASURE("have a stream wait for an event", 0, 1, do_cudaStreamWaitEvent(next, event, 0), );
  MEASURE(
      "record an event and ask until it is seen", 0, 1, {
        (void)do_cudaEventRecord(event, stream);
        while (do_cudaEventQuery(event) != 0) continue;
      }, );
  MEASURE(
      "copy in, record an event and ask until it is seen", 8, 1, {
        (void)do_cudaMemcpyAsync(device, pinned, 8, in, stream);
        (void)do_cudaEventRecord(event, stream);
        while (do_cudaEventQuery(event) != 0) continue;
      }, );
  MEASURE("host function and synchronise", 0, 1,
          (do_cudaLaunchHostFunc(stream, nothing, NULL), do_cudaStreamSynchronize(stream)), );
  for (size_t bytes = 4096; bytes <= most; bytes *= 128) {
    MEASURE("take memory of a device", bytes, 1, do_cudaMalloc(&taken, bytes), do_cudaFree(taken));
    MEASURE("give it back", bytes, 1, do_cudaFree(taken), do_cudaMalloc(&taken, bytes));
    do_cudaFree(taken);
    MEASURE("register memory", bytes, 1, do_cudaHostRegister(pageable, bytes, 0), do_cudaHostUnregister(pageable));
  }
}

int main(int argc, char** argv) {
#ifndef WITHOUT_MPI
  MPI_Init(&argc, &argv);
#endif
  if (argc > 1) rounds = atoi(argv[1]);
  if (rounds < 1 || rounds > samples_most) rounds = 21;
  runtime = dlopen("libcudart.so.12", RTLD_NOW);
  if (runtime == NULL) {
    printf("%s\n", dlerror());
    return 1;
  }
  LET(cudaMalloc);
  LET(cudaMallocHost);
  LET(cudaStreamCreateWithFlags);
  LET(cudaEventCreateWithFlags);
  (void)do_cudaMalloc((void**)&device, most);
  (void)do_cudaMalloc((void**)&second, most);
  (void)do_cudaMallocHost((void**)&pinned, most);
  (void)do_cudaMallocHost((void**)&back, most);
  pageable = malloc(most);
  memset(pageable, 1, most);
  memset(pinned, 1, most);
  memset(back, 1, most);
  (void)do_cudaStreamCreateWithFlags(&stream, 1);
  (void)do_cudaStreamCreateWithFlags(&next, 1);
  (void)do_cudaEventCreateWithFlags(&event, 0);
  (void)do_cudaEventCreateWithFlags(&ended, 0);
  calls();
  for (size_t bytes = 8; bytes <= most; bytes *= 8) copies_of(bytes);
#ifndef WITHOUT_MPI
  MPI_Finalize();
#endif
  return 0;
}
