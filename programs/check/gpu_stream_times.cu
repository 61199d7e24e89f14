// What kernels, operations of streams on words of memory, memory of pools and pinned memory take: lines WHAT, BYTES
// MICROSECONDS, medians. Those of a real GPU are in gpu_stream_times_h100.txt. For a computer that has a GPU and no
// MPI, compile with -DWITHOUT_MPI. Argument: how often each is measured; a simulated one takes the same each time.
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_measured.h"

enum { in_a_row = 32, turns = 16 };

// The first one warms up and does not count.
template <class Doing, class After>
static void measure(const char* what, size_t bytes, double parts, Doing doing, After after) {
  for (int i = -1; i < rounds; ++i) {
    const double begin = now();
    doing();
    if (i >= 0) samples[i] = now() - begin;
    after();
  }
  say(what, bytes, parts);
}
template <class Doing>
static void measure(const char* what, size_t bytes, double parts, Doing doing) {
  measure(what, bytes, parts, doing, [] {});
}

static cudaStream_t stream, next;
static cudaEvent_t begun, ended, passed, returned;
static char *device, *pinned;

static void synchronise(void) { cudaStreamSynchronize(stream); }

template <class Doing>
static void between_events(const char* what, size_t bytes, Doing doing) {
  for (int i = -1; i < rounds; ++i) {
    float ms = 0;
    cudaEventRecord(begun, stream);
    doing();
    cudaEventRecord(ended, stream);
    synchronise();
    cudaEventElapsedTime(&ms, begun, ended);
    if (i >= 0) samples[i] = (double)ms * 1e3;
  }
  say(what, bytes, 1);
}

static volatile uint64_t* word;      // of the host's memory
static volatile uint64_t* answered;  // another line of it
static CUdeviceptr host_word, host_answer, device_word, device_answer;

__global__ void empty(void) {}

static void launch(cudaStream_t in) { empty<<<1, 32, 0, in>>>(); }

static void kernels(void) {
  measure("kernel, call", 0, 1, [] { launch(stream); }, synchronise);
  measure("kernel and synchronise", 0, 1, [] { launch(stream), synchronise(); });
  measure("kernel of 1,024 blocks and synchronise", 0, 1, [] {
    empty<<<1024, 32, 0, stream>>>();
    synchronise();
  });
  between_events("kernel, between events", 0, [] { launch(stream); });
  between_events("two kernels, between events", 0, [] { launch(stream), launch(stream); });
  measure("kernel, each of 32", 0, in_a_row, [] {
    for (int k = 0; k < in_a_row; ++k) launch(stream);
    synchronise();
  });
  between_events("copy in and kernel, between events", 8, [] {
    cudaMemcpyAsync(device, pinned, 8, cudaMemcpyHostToDevice, stream);
    launch(stream);
  });
  between_events("kernel and copy out, between events", 8, [] {
    launch(stream);
    cudaMemcpyAsync(pinned, device, 8, cudaMemcpyDeviceToHost, stream);
  });
  // A kernel here, a kernel there, each behind the other's by events.
  measure("kernels of two streams by turns, each", 0, 2 * turns, [] {
    for (int k = 0; k < turns; ++k) {
      launch(stream);
      cudaEventRecord(passed, stream);
      cudaStreamWaitEvent(next, passed, 0);
      launch(next);
      cudaEventRecord(returned, next);
      cudaStreamWaitEvent(stream, returned, 0);
    }
    synchronise();
  });
}

static void write(cudaStream_t in, CUdeviceptr at, uint64_t value) { cuStreamWriteValue64(in, at, value, 0); }
static void await(cudaStream_t in, CUdeviceptr at, uint64_t value) {
  cuStreamWaitValue64(in, at, value, CU_STREAM_WAIT_VALUE_GEQ);
}

static void operations(void) {
  const struct {
    const char *write, *written, *each, *wait;
    CUdeviceptr at;
  } places[] = {{"write to the host, call", "write to the host and synchronise", "write to the host, each of 32",
                 "wait for the host's memory that is met, each of 32", host_word},
                {"write to the device, call", "write to the device and synchronise", "write to the device, each of 32",
                 "wait for the device's memory that is met, each of 32", device_word}};
  for (int i = 0; i < 2; ++i) {
    const CUdeviceptr at = places[i].at;
    measure(places[i].write, 8, 1, [=] { write(stream, at, 7); }, synchronise);
    measure(places[i].written, 8, 1, [=] { write(stream, at, 7), synchronise(); });
    measure(places[i].each, 8, in_a_row, [=] {
      for (int k = 0; k < in_a_row; ++k) write(stream, at, 7);
      synchronise();
    });
    measure(places[i].wait, 8, in_a_row, [=] {
      for (int k = 0; k < in_a_row; ++k) await(stream, at, 1);
      synchronise();
    });
  }
  static CUstreamBatchMemOpParams batch[in_a_row];
  for (int k = 0; k < in_a_row; ++k) {
    batch[k].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    batch[k].writeValue.address = device_word;
    batch[k].writeValue.value64 = 7;
  }
  measure(
      "batch of 32 writes to the device, call", 8, 1, [] { cuStreamBatchMemOp(stream, in_a_row, batch, 0); },
      synchronise);
  measure("batch of 32 writes to the device and synchronise", 8, 1,
          [] { cuStreamBatchMemOp(stream, in_a_row, batch, 0), synchronise(); });
  between_events("write to the device, between events", 8, [] { write(stream, device_word, 7); });
  between_events("write to the host, between events", 8, [] { write(stream, host_word, 7); });
  between_events("kernel, write, kernel, between events", 8,
                 [] { launch(stream), write(stream, device_word, 7), launch(stream); });
  between_events("kernel, wait that is met, kernel, between events", 8,
                 [] { launch(stream), await(stream, device_word, 1), launch(stream); });
  // Streams that set each other going by words of the device's memory.
  write(stream, device_word, 0), write(stream, device_answer, 0), synchronise();
  measure(
      "two streams by turns over words, each", 8, 2 * turns,
      [] {
        for (uint64_t k = 1; k <= turns; ++k) {
          write(stream, device_word, k), await(next, device_word, k);
          write(next, device_answer, k), await(stream, device_answer, k);
        }
        synchronise();
      },
      [] { write(stream, device_word, 0), write(stream, device_answer, 0), synchronise(); });
#ifdef WITHOUT_MPI
  // The processor writes a word for which a stream waits, and looks until the stream has answered with another. A
  // simulated processor that looks at memory has no clock, so there it is no figure.
  for (int i = -1; i < rounds; ++i) {
    *word = 0;
    *answered = 0;
    __sync_synchronize();
    await(stream, host_word, 1), write(stream, host_answer, 1);
    for (const double begin = now(); now() - begin < 100;) continue;
    const double begin = now();
    *word = 1;
    while (*answered == 0) continue;
    if (i >= 0) samples[i] = now() - begin;
    synchronise();
  }
  printf("# ");
  say("the processor sets a stream going and sees its answer", 8, 1);
#endif
}

static void memory(void) {
  static void *taken, *held[2];
  // The driver keeps memory of its own from which it gives out small pieces, as long as one is in use.
  for (int i = 0; i < 2; ++i) cudaMallocHost(&held[i], 4096);
  for (size_t bytes = 4096; bytes <= (size_t)256 << 20; bytes *= 4) {
    const auto take = [=] { cudaMallocHost(&taken, bytes); };
    const auto give = [] { cudaFreeHost(taken); };
    measure("take pinned memory", bytes, 1, take, give);
    take();
    measure("give pinned memory back", bytes, 1, give, take);
    give();
  }
  cudaMemPool_t pool;
  cudaDeviceGetDefaultMemPool(&pool, 0);
  for (int kept = 0; kept < 2; ++kept) {
    uint64_t threshold = kept ? UINT64_MAX : 0;
    cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold);
    for (size_t bytes = 4096; bytes <= (size_t)256 << 20; bytes *= 256) {
      const auto take = [=] { cudaMallocAsync(&taken, bytes, stream); };
      const auto give = [] { cudaFreeAsync(taken, stream); };
      const auto give_now = [=] { give(), synchronise(); };
      const auto take_now = [=] { take(), synchronise(); };
      measure(kept ? "take memory of a pool that keeps it" : "take memory of a pool", bytes, 1, take, give_now);
      take_now();
      measure(kept ? "give memory back to a pool that keeps it" : "give memory back to a pool", bytes, 1, give,
              take_now);
      give_now();
    }
  }
  static char* pages;
  pages = (char*)aligned_alloc(4096, (size_t)256 << 20);
  memset(pages, 1, (size_t)256 << 20);
  for (size_t bytes = 4096; bytes <= (size_t)256 << 20; bytes *= 16) {
    const auto enter = [=] { cudaHostRegister(pages, bytes, 0); };
    const auto leave = [] { cudaHostUnregister(pages); };
    measure("register memory", bytes, 1, enter, leave);
    enter();
    measure("unregister memory", bytes, 1, leave, enter);
    leave();
  }
  free(pages);
  static cudaIpcMemHandle_t handle;
  measure("show memory", 0, 1, [] { cudaIpcGetMemHandle(&handle, device); });
  static unsigned yes = 1;
  measure("have copies of it waited for", 0, 1,
          [] { cuPointerSetAttribute(&yes, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)device); });
  static cudaStream_t made;
  measure(
      "create a stream", 0, 1, [] { cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking); },
      [] { cudaStreamDestroy(made); });
  static cudaEvent_t event;
  measure(
      "create an event", 0, 1, [] { cudaEventCreateWithFlags(&event, cudaEventDisableTiming); },
      [] { cudaEventDestroy(event); });
}

int main(int argc, char** argv) {
#ifndef WITHOUT_MPI
  MPI_Init(&argc, &argv);
#endif
  if (argc > 1) rounds = atoi(argv[1]);
  if (rounds < 1 || rounds > samples_most) rounds = 21;
  cudaMalloc((void**)&device, 1 << 20);
  cudaMallocHost((void**)&pinned, 1 << 20);
  memset(pinned, 0, 1 << 20);
  word = (volatile uint64_t*)pinned;
  answered = word + 512;
  host_word = (CUdeviceptr)word;
  host_answer = (CUdeviceptr)answered;
  device_word = (CUdeviceptr)device;
  device_answer = device_word + 4096;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&next, cudaStreamNonBlocking);
  cudaEventCreate(&begun);
  cudaEventCreate(&ended);
  cudaEventCreateWithFlags(&passed, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&returned, cudaEventDisableTiming);
  kernels();
  operations();
  memory();
#ifndef WITHOUT_MPI
  MPI_Finalize();
#endif
  return 0;
}
