// What a CUDA runtime and driver answer to calls right and wrong, one line each, and which calls wait for what is under
// way. The lines of a real GPU are in gpu_answers.txt; the simulated runtime has to print the same. For a computer that
// has a GPU and no MPI, compile with -DWITHOUT_MPI. Argument: how many large copies keep a stream busy.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef WITHOUT_MPI
#include <mpi.h>
#endif

typedef struct {
  int type, device;
  void *device_pointer, *host_pointer;
} Attributes;

// Found as a program finds them that loads the libraries itself; nothing is linked.
extern int cudaGetDeviceCount(int*), cudaGetDevice(int*), cudaSetDevice(int), cudaGetLastError(void),
    cudaPeekAtLastError(void), cudaDeviceSynchronize(void), cudaMalloc(void**, size_t), cudaMallocHost(void**, size_t),
    cudaHostAlloc(void**, size_t, unsigned), cudaMallocManaged(void**, size_t, unsigned), cudaFree(void*),
    cudaFreeHost(void*), cudaHostRegister(void*, size_t, unsigned), cudaHostUnregister(void*),
    cudaHostGetDevicePointer(void**, void*, unsigned), cudaHostGetFlags(unsigned*, void*),
    cudaMemGetInfo(size_t*, size_t*), cudaPointerGetAttributes(Attributes*, const void*),
    cudaMemcpy(void*, const void*, size_t, int), cudaMemcpyAsync(void*, const void*, size_t, int, void*),
    cudaMemcpy2D(void*, size_t, const void*, size_t, size_t, size_t, int),
    cudaMemcpyPeer(void*, int, const void*, int, size_t), cudaMemset(void*, int, size_t),
    cudaMemsetAsync(void*, int, size_t, void*), cudaStreamCreate(void**), cudaStreamCreateWithFlags(void**, unsigned),
    cudaStreamCreateWithPriority(void**, unsigned, int), cudaStreamDestroy(void*), cudaStreamQuery(void*),
    cudaStreamSynchronize(void*), cudaStreamWaitEvent(void*, void*, unsigned), cudaStreamGetFlags(void*, unsigned*),
    cudaStreamGetPriority(void*, int*), cudaDeviceGetStreamPriorityRange(int*, int*), cudaEventCreate(void**),
    cudaEventCreateWithFlags(void**, unsigned), cudaEventDestroy(void*), cudaEventRecord(void*, void*),
    cudaEventQuery(void*), cudaEventSynchronize(void*), cudaEventElapsedTime(float*, void*, void*),
    cudaDeviceCanAccessPeer(int*, int, int), cudaDeviceEnablePeerAccess(int, unsigned),
    cudaDeviceDisablePeerAccess(int), cudaLaunchHostFunc(void*, void (*)(void*), void*),
    cudaIpcGetMemHandle(void*, void*), cudaIpcCloseMemHandle(void*), cudaDeviceGetAttribute(int*, int, int),
    cudaDeviceGetPCIBusId(char*, int, int), cudaSetDeviceFlags(unsigned), cudaGetDeviceFlags(unsigned*),
    cudaRuntimeGetVersion(int*), cudaMallocAsync(void**, size_t, void*), cudaFreeAsync(void*, void*),
    cudaMallocFromPoolAsync(void**, size_t, void*, void*), cudaDeviceGetDefaultMemPool(void**, int),
    cudaDeviceGetMemPool(void**, int), cudaDeviceSetMemPool(int, void*), cudaMemPoolCreate(void**, const void*),
    cudaMemPoolDestroy(void*), cudaMemPoolTrimTo(void*, size_t), cudaMemPoolGetAttribute(void*, int, void*),
    cudaMemPoolSetAttribute(void*, int, void*), cudaMallocPitch(void**, size_t*, size_t, size_t),
    cudaMemset2D(void*, size_t, int, size_t, size_t), cudaMemset2DAsync(void*, size_t, int, size_t, size_t, void*),
    cudaMemPrefetchAsync(const void*, size_t, int, void*), cudaMemAdvise(const void*, size_t, int, int),
    cudaDeviceSetLimit(int, size_t), cudaDeviceGetLimit(size_t*, int), cudaDeviceSetCacheConfig(int),
    cudaDeviceGetCacheConfig(int*), cudaStreamAddCallback(void*, void (*)(void*, int, void*), void*, unsigned),
    cudaStreamIsCapturing(void*, int*), cudaEventRecordWithFlags(void*, void*, unsigned), cudaProfilerStart(void),
    cudaProfilerStop(void);
extern const char* cudaGetErrorName(int);
extern const char* cudaGetErrorString(int);
typedef struct {
  char bytes[64];
} Handle;
extern int cudaIpcOpenMemHandle(void**, Handle, unsigned);
extern int cuInit(unsigned), cuDeviceGet(int*, int), cuDeviceGetCount(int*), cuDeviceCanAccessPeer(int*, int, int),
    cuCtxGetCurrent(void**), cuCtxSetCurrent(void*), cuCtxGetDevice(int*), cuPointerGetAttribute(void*, int, uint64_t),
    cuPointerGetAttributes(unsigned, const int*, void**, uint64_t), cuPointerSetAttribute(const void*, int, uint64_t),
    cuMemGetAddressRange_v2(uint64_t*, size_t*, uint64_t), cuMemAlloc_v2(uint64_t*, size_t), cuMemFree_v2(uint64_t),
    cuMemcpy(uint64_t, uint64_t, size_t), cuMemcpyHtoD_v2(uint64_t, const void*, size_t),
    cuMemcpyDtoH_v2(void*, uint64_t, size_t), cuMemsetD8_v2(uint64_t, unsigned char, size_t),
    cuStreamCreate(void**, unsigned), cuEventCreate(void**, unsigned), cuEventDestroy_v2(void*),
    cuStreamDestroy_v2(void*), cuMemHostUnregister(void*), cuMemHostGetDevicePointer_v2(uint64_t*, void*, unsigned),
    cuGetErrorName(int, const char**), cuGetErrorString(int, const char**), cuDevicePrimaryCtxRetain(void**, int),
    cuDevicePrimaryCtxRelease_v2(int), cuDevicePrimaryCtxGetState(int, unsigned*, int*),
    cuMemAllocAsync(uint64_t*, size_t, void*), cuMemFreeAsync(uint64_t, void*), cuDeviceGetDefaultMemPool(void**, int),
    cuMemPoolTrimTo(void*, size_t);

static void *runtime, *driver;

static void* find(const char* name) {
  void* found = dlsym(strncmp(name, "cuda", 4) == 0 ? runtime : driver, name);
  if (found == NULL) {
    printf("no %s\n", name);
    exit(1);
  }
  return found;
}

#define CALL(name, ...) ((__typeof__(&name))find(#name))(__VA_ARGS__)
#define SAY(name, ...) printf("%s(%s) %d\n", #name, #__VA_ARGS__, CALL(name, __VA_ARGS__))

static char *device, *second, *pinned, *managed, *pageable, *registered;
enum { room = 64 << 10, h2d = 1, d2h = 2, d2d = 3, h2h = 0, any = 4 };

static void say_attributes(const char* what, const void* pointer) {
  Attributes a = {-7, -7, NULL, NULL};
  const int code = CALL(cudaPointerGetAttributes, &a, pointer);
  printf("attributes of %s: %d type %d device %d, device pointer %s, host pointer %s\n", what, code, a.type, a.device,
         a.device_pointer == pointer ? "the same"
         : a.device_pointer == NULL  ? "null"
                                     : "another",
         a.host_pointer == pointer ? "the same"
         : a.host_pointer == NULL  ? "null"
                                   : "another");
}

static void devices(void) {
  int n = -7;
  unsigned flags = 7;
  SAY(cudaGetDevice, &n);
  printf("device %d\n", n);
  SAY(cudaGetDevice, NULL);
  SAY(cudaGetDeviceCount, NULL);
  SAY(cudaSetDevice, -1);
  SAY(cudaSetDevice, 100);
  SAY(cudaPeekAtLastError);
  SAY(cudaGetLastError);
  SAY(cudaGetLastError);
  SAY(cudaSetDevice, 0);
  SAY(cudaSetDeviceFlags, 0xffff);
  SAY(cudaGetDeviceFlags, &flags);
  SAY(cudaDeviceCanAccessPeer, &n, 0, 0);
  printf("can %d\n", n);
  SAY(cudaDeviceCanAccessPeer, &n, 0, 100);
  SAY(cudaDeviceEnablePeerAccess, 0, 0);
  SAY(cudaDeviceEnablePeerAccess, 0, 1);
  SAY(cudaDeviceEnablePeerAccess, 100, 0);
  SAY(cudaDeviceDisablePeerAccess, 0);
  SAY(cudaDeviceDisablePeerAccess, 100);
  char bus[32];
  SAY(cudaDeviceGetPCIBusId, bus, 32, 100);
  SAY(cudaDeviceGetPCIBusId, bus, 1, 0);
  SAY(cudaDeviceGetPCIBusId, bus, 13, 0);
  printf("%zu characters\n", strlen(bus));
  SAY(cudaDeviceGetAttribute, &n, 10, 0);
  printf("warp %d\n", n);
  SAY(cudaDeviceGetAttribute, &n, 41, 0);
  printf("unified addressing %d\n", n);
  SAY(cudaDeviceGetAttribute, &n, 83, 0);
  printf("managed memory %d\n", n);
  SAY(cudaDeviceGetAttribute, &n, 89, 0);
  printf("concurrent managed access %d\n", n);
  SAY(cudaDeviceGetAttribute, &n, 91, 0);
  printf("host pointer of registered memory %d\n", n);
  SAY(cudaDeviceGetAttribute, &n, 9999, 0);
  SAY(cudaDeviceGetAttribute, &n, 10, 100);
  (void)CALL(cudaGetLastError);
}

static void allocation(void) {
  void* p = &device;
  SAY(cudaMalloc, NULL, 8);
  SAY(cudaMalloc, &p, 0);
  printf("is null %d\n", p == NULL);
  p = &device;
  SAY(cudaMalloc, &p, (size_t)1 << 50);
  printf("left alone %d, null %d\n", p == (void*)&device, p == NULL);
  SAY(cudaPeekAtLastError);
  SAY(cudaMallocHost, NULL, 8);
  SAY(cudaMallocHost, &p, 0);
  SAY(cudaMallocManaged, &p, 0, 1);
  SAY(cudaMallocManaged, &p, 8, 0);
  SAY(cudaMallocManaged, &p, 8, 7);
  SAY(cudaHostAlloc, &p, 8, 0x100);
  SAY(cudaFree, NULL);
  SAY(cudaFreeHost, NULL);
  SAY(cudaMalloc, (void**)&device, room);
  SAY(cudaMalloc, (void**)&second, room);
  SAY(cudaMallocHost, (void**)&pinned, room);
  SAY(cudaMallocManaged, (void**)&managed, room, 1);
  pageable = aligned_alloc(4096, room);
  registered = aligned_alloc(4096, room);
  memset(pageable, 1, room);
  memset(registered, 1, room);
  printf("aligned to 256 %d\n", (uintptr_t)device % 256 == 0);
  SAY(cudaFree, device + 8);
  SAY(cudaFree, pageable);
  SAY(cudaFree, pinned);
  SAY(cudaFreeHost, pinned + 4096);
  SAY(cudaFreeHost, device);
  SAY(cudaFreeHost, managed);
  SAY(cudaFreeHost, pageable);
  void* q = NULL;
  SAY(cudaMalloc, &q, 100);
  SAY(cudaFree, q);
  SAY(cudaFree, q);
  SAY(cudaMallocHost, &q, 100);
  SAY(cudaFreeHost, q);
  SAY(cudaFreeHost, q);
  SAY(cudaHostRegister, registered, room, 0);
  SAY(cudaHostRegister, registered, room, 0);
  SAY(cudaHostRegister, registered + 4096, 4096, 0);
  SAY(cudaHostUnregister, registered + 4096);
  SAY(cudaHostRegister, NULL, 8, 0);
  SAY(cudaHostRegister, pageable, 0, 0);
  SAY(cudaHostRegister, pageable, 8, 0x1000);
  SAY(cudaHostRegister, device, 8, 0);
  SAY(cudaHostRegister, pinned, 8, 0);
  SAY(cudaHostUnregister, pageable);
  SAY(cudaHostUnregister, NULL);
  SAY(cudaHostUnregister, pinned);
  SAY(cudaHostUnregister, device);
  SAY(cudaFreeHost, registered);
  SAY(cudaHostGetDevicePointer, &q, pinned, 0);
  printf("the same %d\n", q == (void*)pinned);
  SAY(cudaHostGetDevicePointer, &q, registered + 8, 0);
  printf("the same %d\n", q == (void*)(registered + 8));
  SAY(cudaHostGetDevicePointer, &q, pageable, 0);
  SAY(cudaHostGetDevicePointer, &q, device, 0);
  unsigned flags = 0;
  SAY(cudaHostGetFlags, &flags, pinned);
  SAY(cudaHostGetFlags, &flags, pageable);
  (void)CALL(cudaGetLastError);
}

static void pointers(void) {
  say_attributes("device", device);
  say_attributes("device, 100 in", device + 100);
  say_attributes("device, its last byte", device + room - 1);
  say_attributes("pinned", pinned);
  say_attributes("pinned, 100 in", pinned + 100);
  say_attributes("managed", managed);
  say_attributes("registered", registered);
  say_attributes("registered, 100 in", registered + 100);
  say_attributes("pageable", pageable);
  say_attributes("null", NULL);
  say_attributes("a function", (const void*)(uintptr_t)&say_attributes);
  SAY(cudaPointerGetAttributes, NULL, device);
  (void)CALL(cudaGetLastError);
}

static void copies(void) {
  SAY(cudaMemcpy, device, pageable, 8, h2d);
  SAY(cudaMemcpy, device, pageable, 8, any);
  SAY(cudaMemcpy, device, pageable, 8, d2h);
  SAY(cudaMemcpy, device, pageable, 8, d2d);
  SAY(cudaMemcpy, device, pageable, 8, 7);
  SAY(cudaMemcpy, pageable, device, 8, h2d);
  SAY(cudaMemcpy, pageable, device, 8, d2h);
  SAY(cudaMemcpy, device, second, 8, h2d);
  SAY(cudaMemcpy, device, second, 8, d2h);
  SAY(cudaMemcpy, device, pinned, 8, d2d);
  SAY(cudaMemcpy, pinned, managed, 8, d2h);
  SAY(cudaMemcpy, pageable, pinned, 8, d2h);
  SAY(cudaMemcpy, pageable, registered, 8, any);
  SAY(cudaMemcpy, pageable, pageable + 64, 8, any);
  SAY(cudaMemcpy, device, second, 0, d2d);
  SAY(cudaMemcpy, NULL, NULL, 0, any);
  SAY(cudaMemcpy, NULL, device, 8, d2h);
  SAY(cudaMemcpy, device, NULL, 8, h2d);
  SAY(cudaMemcpy, device + 8, pageable, room, h2d);
  SAY(cudaMemcpy, pageable, device + room - 8, 16, d2h);
  SAY(cudaMemcpyAsync, device, pageable, 8, h2d, NULL);
  SAY(cudaMemcpyAsync, device, pageable, 8, h2d, (void*)1);
  SAY(cudaMemcpyAsync, device, pageable, 8, h2d, (void*)2);
  SAY(cudaMemcpyAsync, device, pageable, 8, 9, NULL);
  SAY(cudaMemcpyPeer, device, 0, second, 0, 8);
  SAY(cudaMemcpyPeer, device, 100, second, 0, 8);
  SAY(cudaMemcpy2D, device, 64, pageable, 128, 32, 4, h2d);
  SAY(cudaMemcpy2D, device, 16, pageable, 128, 32, 4, h2d);
  SAY(cudaMemset, device, 1, room);
  SAY(cudaMemset, device, 1, 0);
  SAY(cudaMemset, device + 8, 1, room);
  SAY(cudaMemset, pinned, 1, 8);
  SAY(cudaMemset, managed, 1, 8);
  SAY(cudaMemset, registered, 1, 8);
  SAY(cudaMemset, pageable, 1, 8);
  SAY(cudaMemset, NULL, 1, 8);
  SAY(cudaDeviceSynchronize);
  (void)CALL(cudaGetLastError);
}

static void streams(void) {
  void *stream = NULL, *event = NULL, *other = NULL, *bare = NULL;
  unsigned flags = 7;
  int number = 7;
  float ms = -1;
  SAY(cudaStreamCreate, NULL);
  SAY(cudaStreamCreateWithFlags, &stream, 2);
  SAY(cudaStreamCreateWithFlags, &stream, 1);
  SAY(cudaStreamGetFlags, stream, &flags);
  printf("flags %u\n", flags);
  SAY(cudaStreamGetPriority, stream, &number);
  printf("priority %d\n", number);
  SAY(cudaStreamCreateWithPriority, &other, 0, 1000);
  SAY(cudaStreamGetPriority, other, &number);
  printf("priority %d\n", number);
  SAY(cudaStreamQuery, NULL);
  SAY(cudaStreamQuery, (void*)1);
  SAY(cudaStreamQuery, (void*)2);
  SAY(cudaStreamQuery, stream);
  SAY(cudaStreamSynchronize, NULL);
  SAY(cudaStreamDestroy, NULL);
  SAY(cudaStreamDestroy, (void*)1);
  SAY(cudaEventCreate, NULL);
  SAY(cudaEventCreateWithFlags, &event, 0x100);
  SAY(cudaEventCreate, &event);
  SAY(cudaEventCreate, &other);
  SAY(cudaEventCreateWithFlags, &bare, 2);
  SAY(cudaEventQuery, event);
  SAY(cudaEventSynchronize, event);
  SAY(cudaEventElapsedTime, &ms, event, other);
  SAY(cudaEventElapsedTime, NULL, event, other);
  SAY(cudaStreamWaitEvent, stream, event, 0);
  SAY(cudaStreamWaitEvent, stream, event, 8);
  SAY(cudaStreamWaitEvent, stream, NULL, 0);
  SAY(cudaEventRecord, NULL, stream);
  SAY(cudaEventRecord, event, stream);
  SAY(cudaEventRecord, other, NULL);
  SAY(cudaEventRecord, bare, stream);
  SAY(cudaDeviceSynchronize);
  SAY(cudaEventElapsedTime, &ms, event, other);
  SAY(cudaEventElapsedTime, &ms, event, bare);
  SAY(cudaEventQuery, NULL);
  SAY(cudaEventDestroy, NULL);
  SAY(cudaEventDestroy, event);
  SAY(cudaStreamDestroy, stream);
  (void)CALL(cudaGetLastError);
}

static int called, called_code;
static void host_function(void* argument) {
  called = *(int*)argument;
  called_code = CALL(cudaStreamQuery, NULL);
}

static void ipc(void) {
  Handle handle, garbage;
  void* opened = NULL;
  memset(&garbage, 0x5a, sizeof garbage);
  SAY(cudaIpcGetMemHandle, &handle, NULL);
  SAY(cudaIpcGetMemHandle, &handle, pageable);
  SAY(cudaIpcGetMemHandle, &handle, pinned);
  SAY(cudaIpcGetMemHandle, &handle, registered);
  SAY(cudaIpcGetMemHandle, &handle, managed);
  SAY(cudaIpcGetMemHandle, &handle, device + 100);
  SAY(cudaIpcGetMemHandle, &handle, device);
  SAY(cudaIpcOpenMemHandle, &opened, handle, 1);
  SAY(cudaIpcOpenMemHandle, &opened, handle, 0);
  SAY(cudaIpcOpenMemHandle, &opened, garbage, 1);
  SAY(cudaIpcCloseMemHandle, device);
  SAY(cudaIpcCloseMemHandle, NULL);
  SAY(cudaIpcCloseMemHandle, pageable);
  (void)CALL(cudaGetLastError);
}

// Which calls come back while a stream is busy. Large copies keep it busy for tens of milliseconds; whether it still is
// says whether the call has waited for it.
enum { large = 64 << 20 };
static int many = 60;  // copies: some 70 ms over PCIe 5
static char *large_pinned, *large_device;

static void* over;  // recorded behind the copies

static void keep_busy(void* stream) {
  for (int i = 0; i < many; ++i)
    if (CALL(cudaMemcpyAsync, large_device, large_pinned, large, h2d, stream) != 0) printf("no copy\n");
  if (CALL(cudaEventRecord, over, stream) != 0) printf("no event\n");
}

#define WAITS(stream, name, ...)                                                          \
  do {                                                                                    \
    keep_busy(stream);                                                                    \
    const int code_ = CALL(name, __VA_ARGS__);                                            \
    const int busy_ = CALL(cudaEventQuery, over), queue_ = CALL(cudaStreamQuery, stream); \
    printf("%s busy: %s(%s) %d %s%s\n", #stream, #name, #__VA_ARGS__, code_,              \
           busy_ == 600 ? "returns"                                                       \
           : busy_ == 0 ? "waits"                                                         \
                        : "fails",                                                        \
           busy_ == 0 && queue_ == 600 ? " for what was there" : "");                     \
    (void)CALL(cudaDeviceSynchronize);                                                    \
  } while (0)

static void waiting(void) {
  void *blocking, *free_, *idle, *event, *done, *p = NULL, *q = NULL;
  const void* const legacy = NULL;
  void* const standard = (void*)legacy;
  char* small = malloc(1024);
  memset(small, 0, 1024);
  (void)CALL(cudaEventCreateWithFlags, &over, 2);
  (void)CALL(cudaMalloc, (void**)&large_device, large);
  (void)CALL(cudaMallocHost, (void**)&large_pinned, large);
  (void)CALL(cudaStreamCreate, &blocking);
  (void)CALL(cudaStreamCreateWithFlags, &free_, 1);
  (void)CALL(cudaStreamCreateWithFlags, &idle, 1);
  (void)CALL(cudaEventCreate, &event);
  (void)CALL(cudaEventCreate, &done);
  (void)CALL(cudaEventRecord, done, idle);
  (void)CALL(cudaDeviceSynchronize);

  WAITS(blocking, cudaStreamQuery, standard);
  WAITS(free_, cudaStreamQuery, standard);
  WAITS(standard, cudaStreamQuery, blocking);
  WAITS(standard, cudaStreamQuery, free_);
  WAITS(blocking, cudaStreamSynchronize, standard);
  WAITS(free_, cudaStreamSynchronize, standard);
  WAITS(standard, cudaStreamSynchronize, blocking);
  WAITS(free_, cudaStreamSynchronize, idle);
  WAITS(free_, cudaEventRecord, event, free_);
  WAITS(free_, cudaEventQuery, done);
  WAITS(free_, cudaEventSynchronize, done);
  WAITS(free_, cudaStreamWaitEvent, free_, event, 0);

  WAITS(free_, cudaMemcpy, second, small, 64, h2d);
  WAITS(free_, cudaMemcpy, small, second, 64, d2h);
  WAITS(free_, cudaMemcpy, device, second, 64, d2d);
  WAITS(blocking, cudaMemcpy, device, second, 64, d2d);
  WAITS(blocking, cudaMemcpy, second, small, 64, h2d);
  WAITS(blocking, cudaMemcpy, small, second, 64, d2h);
  WAITS(blocking, cudaMemcpy, small, pageable, 64, h2h);
  WAITS(blocking, cudaMemcpy, pinned, pageable, 64, h2h);
  WAITS(free_, cudaMemset, device, 1, 64);
  WAITS(blocking, cudaMemset, device, 1, 64);
  WAITS(blocking, cudaMemset, pinned, 1, 64);

  WAITS(free_, cudaMemcpyAsync, second, small, 64, h2d, free_);
  WAITS(free_, cudaMemcpyAsync, second, pageable, room, h2d, free_);
  WAITS(free_, cudaMemcpyAsync, small, second, 64, d2h, free_);
  WAITS(free_, cudaMemcpyAsync, second, pinned, room, h2d, free_);
  WAITS(free_, cudaMemcpyAsync, pinned, second, room, d2h, free_);
  WAITS(free_, cudaMemcpyAsync, second, registered, room, h2d, free_);
  WAITS(free_, cudaMemcpyAsync, registered, second, room, d2h, free_);
  WAITS(free_, cudaMemcpyAsync, second, device, room, d2d, free_);
  WAITS(free_, cudaMemcpyAsync, small, pageable, 64, h2h, free_);
  WAITS(free_, cudaMemcpyAsync, pinned, registered, 64, h2h, free_);
  WAITS(free_, cudaMemsetAsync, device, 1, 64, free_);
  WAITS(blocking, cudaMemcpyAsync, pinned, second, room, d2h, standard);
  WAITS(blocking, cudaMemcpyAsync, small, second, 64, d2h, idle);

  WAITS(free_, cudaMemsetAsync, pinned, 1, 64, free_);
  char* longer = malloc(1 << 20);
  memset(longer, 0, 1 << 20);
  WAITS(free_, cudaMemcpyAsync, large_device, longer, 1 << 20, h2d, free_);
  WAITS(free_, cudaMemcpy, large_device, longer, 1 << 20, h2d);
  WAITS(free_, cudaMemcpy, longer, large_device, 1 << 20, d2h);
  WAITS(free_, cudaMemcpy, second, pinned, room, h2d);
  WAITS(free_, cudaMemcpy, pinned, second, room, d2h);
  WAITS(free_, cudaMemcpyAsync, second, pinned, room, h2d, idle);
  keep_busy(free_);
  (void)CALL(cudaMemcpyAsync, second, pinned, room, h2d, idle);
  (void)CALL(cudaStreamSynchronize, idle);
  printf("a copy in by another stream %s\n",
         CALL(cudaStreamQuery, free_) == 600 ? "overtakes those of a busy one" : "waits for those of a busy one");
  (void)CALL(cudaDeviceSynchronize);

  WAITS(free_, cudaMalloc, &p, 4096);
  WAITS(free_, cudaFree, p);
  WAITS(free_, cudaFree, NULL);
  WAITS(free_, cudaMalloc, &p, 8 << 20);
  WAITS(free_, cudaFree, p);
  WAITS(free_, cudaMallocHost, &q, 4096);
  WAITS(free_, cudaFreeHost, q);
  WAITS(free_, cudaMallocManaged, &q, 4096, 1);
  WAITS(free_, cudaFree, q);
  WAITS(free_, cudaHostUnregister, registered);
  WAITS(free_, cudaHostRegister, registered, room, 0);
  WAITS(free_, cudaEventCreate, &p);
  WAITS(free_, cudaEventDestroy, p);
  WAITS(free_, cudaStreamCreate, &p);
  WAITS(free_, cudaStreamDestroy, p);
  WAITS(free_, cudaEventDestroy, event);

  keep_busy(free_);
  int seven = 7;
  const int code = CALL(cudaLaunchHostFunc, free_, host_function, &seven);
  const int early = called;
  (void)CALL(cudaStreamSynchronize, free_);
  printf("host function: %d, called early %d, called %d, its own call %d\n", code, early, called, called_code);

  // What is given to a stream that is destroyed is done nevertheless.
  void* gone;
  (void)CALL(cudaStreamCreateWithFlags, &gone, 1);
  memset(pinned, 0, 64);
  (void)CALL(cudaMemset, device, 9, 64);
  (void)CALL(cudaDeviceSynchronize);
  keep_busy(gone);
  (void)CALL(cudaMemcpyAsync, pinned, device, 64, d2h, gone);
  const int destroyed = CALL(cudaStreamDestroy, gone);
  const int before = pinned[0];
  (void)CALL(cudaDeviceSynchronize);
  printf("stream destroyed while busy: %d, %d before and %d after\n", destroyed, before, pinned[0]);

  // An event that is recorded again, and a wait for what was recorded before.
  (void)CALL(cudaEventCreate, &event);
  (void)CALL(cudaEventRecord, event, idle);
  (void)CALL(cudaDeviceSynchronize);
  keep_busy(free_);
  (void)CALL(cudaStreamWaitEvent, idle, event, 0);
  (void)CALL(cudaEventRecord, event, free_);
  const int again = CALL(cudaEventQuery, event), waited = CALL(cudaStreamQuery, idle);
  float ms;
  const int elapsed = CALL(cudaEventElapsedTime, &ms, done, event);
  (void)CALL(cudaDeviceSynchronize);
  printf("event recorded again: %d, who waited for the first %d, elapsed %d, later %d\n", again, waited, elapsed,
         CALL(cudaEventElapsedTime, &ms, done, event));
  (void)CALL(cudaGetLastError);
}

static void say_attribute(const char* what, int attribute, const void* pointer) {
  uint64_t value = 0;
  const int code = CALL(cuPointerGetAttribute, &value, attribute, (uint64_t)(uintptr_t)pointer);
  if (attribute == 1 || attribute == 7) value = value != 0;
  if (attribute == 3 || attribute == 4 || attribute == 11) value = value == (uint64_t)(uintptr_t)pointer;
  if (code != 0) value = 0;
  printf("attribute %d of %s: %d %lld\n", attribute, what, code, (long long)(int)value);
}

static void driver_calls(void) {
  static const int attributes[] = {1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 99};
  int n = 0;
  unsigned flags = 0;
  void *context = NULL, *p = NULL;
  uint64_t base = 0, address = 0;
  size_t bytes = 0;
  SAY(cuInit, 0);
  SAY(cuInit, 1);
  SAY(cuDeviceGet, &n, 100);
  SAY(cuDeviceGet, &n, 0);
  SAY(cuDeviceGet, NULL, 0);
  SAY(cuCtxGetCurrent, &context);
  printf("a context %d\n", context != NULL);
  SAY(cuCtxGetDevice, &n);
  SAY(cuDevicePrimaryCtxRetain, &p, 0);
  printf("the same %d\n", p == context);
  SAY(cuDevicePrimaryCtxGetState, 0, &flags, &n);
  printf("active %d\n", n);
  SAY(cuDevicePrimaryCtxRelease_v2, 0);
  SAY(cuDevicePrimaryCtxRetain, &p, 100);
  SAY(cuCtxSetCurrent, NULL);
  SAY(cuCtxGetCurrent, &p);
  printf("a context %d\n", p != NULL);
  SAY(cuCtxGetDevice, &n);
  SAY(cuMemAlloc_v2, &address, 8);
  SAY(cuCtxSetCurrent, context);
  for (unsigned i = 0; i < sizeof attributes / sizeof *attributes; ++i) {
    say_attribute("device", attributes[i], device + 8);
    say_attribute("pinned", attributes[i], pinned + 8);
    say_attribute("managed", attributes[i], managed);
    say_attribute("registered", attributes[i], registered + 8);
    say_attribute("pageable", attributes[i], pageable);
  }
  SAY(cuPointerGetAttribute, NULL, 2, (uint64_t)(uintptr_t)device);
  unsigned type = 77, is_managed = 77;
  uint64_t id = 77;
  int several[] = {2, 8, 7};
  void* to[] = {&type, &is_managed, &id};
  SAY(cuPointerGetAttributes, 3, several, to, (uint64_t)(uintptr_t)pageable);
  printf("type %u managed %u id %d\n", type, is_managed, id != 0);
  SAY(cuPointerGetAttributes, 3, several, to, (uint64_t)(uintptr_t)device);
  printf("type %u managed %u id %d\n", type, is_managed, id != 0);
  SAY(cuPointerGetAttributes, 3, several, to, 0);
  SAY(cuPointerGetAttributes, 0, several, to, (uint64_t)(uintptr_t)device);
  const unsigned yes = 1;
  SAY(cuPointerSetAttribute, &yes, 6, (uint64_t)(uintptr_t)device);
  SAY(cuPointerSetAttribute, &yes, 6, (uint64_t)(uintptr_t)pageable);
  SAY(cuPointerSetAttribute, &yes, 2, (uint64_t)(uintptr_t)device);
  SAY(cuMemGetAddressRange_v2, &base, &bytes, (uint64_t)(uintptr_t)device + 100);
  printf("base %d bytes %zu\n", base == (uint64_t)(uintptr_t)device, bytes);
  SAY(cuMemGetAddressRange_v2, NULL, NULL, (uint64_t)(uintptr_t)device);
  SAY(cuMemGetAddressRange_v2, &base, &bytes, (uint64_t)(uintptr_t)pinned + 100);
  printf("base %d bytes %zu\n", base == (uint64_t)(uintptr_t)pinned, bytes);
  SAY(cuMemGetAddressRange_v2, &base, &bytes, (uint64_t)(uintptr_t)managed);
  SAY(cuMemGetAddressRange_v2, &base, &bytes, (uint64_t)(uintptr_t)registered);
  SAY(cuMemGetAddressRange_v2, &base, &bytes, (uint64_t)(uintptr_t)pageable);
  SAY(cuMemGetAddressRange_v2, &base, &bytes, 0);
  SAY(cuMemAlloc_v2, &address, 0);
  SAY(cuMemAlloc_v2, NULL, 8);
  SAY(cuMemAlloc_v2, &address, (size_t)1 << 50);
  SAY(cuMemAlloc_v2, &address, 64);
  SAY(cuMemcpyHtoD_v2, address, pageable, 64);
  SAY(cuMemcpyHtoD_v2, address, pageable, 4096);
  SAY(cuMemcpyDtoH_v2, pageable, address, 64);
  SAY(cuMemcpy, (uint64_t)(uintptr_t)pageable, address, 8);
  SAY(cuMemsetD8_v2, address, 1, 64);
  SAY(cuMemsetD8_v2, (uint64_t)(uintptr_t)pageable, 1, 8);
  SAY(cuMemFree_v2, address + 8);
  SAY(cuMemFree_v2, address);
  SAY(cuMemFree_v2, address);
  SAY(cuMemFree_v2, 0);
  SAY(cuMemHostGetDevicePointer_v2, &address, pinned, 0);
  SAY(cuMemHostGetDevicePointer_v2, &address, pageable, 0);
  SAY(cuMemHostUnregister, pageable);
  SAY(cuStreamCreate, &p, 2);
  SAY(cuStreamCreate, &p, 1);
  SAY(cuStreamDestroy_v2, p);
  SAY(cuStreamDestroy_v2, NULL);
  SAY(cuEventCreate, &p, 2);
  SAY(cuEventDestroy_v2, p);
  SAY(cuEventDestroy_v2, NULL);
}

// cudaMemPoolProps: memory of device 0 that no other process can open.
typedef struct {
  int allocation_type, handle_types, location_type, location;
  void* security;
  size_t most;
  unsigned short usage;
  unsigned char reserved[54];
} PoolProperties;

static void say_pool(const char* when, void* pool) {
  static const char* const names[] = {"", "", "", "", "threshold", "reserved", "most reserved", "used", "most used"};
  printf("%s:", when);
  for (int attribute = 1; attribute <= 8; ++attribute) {
    uint64_t value = 0;
    const int code = CALL(cudaMemPoolGetAttribute, pool, attribute, &value);
    // What a pool has reserved comes in pieces of the driver's own size.
    if (attribute == 5 || attribute == 6) value = value != 0;
    printf(" %s %d %llu,", attribute < 4 ? "reuse" : names[attribute], code, (unsigned long long)value);
  }
  printf("\n");
}

static void pools(void) {
  void *pool = NULL, *current = NULL, *own = NULL, *p = NULL, *q = NULL, *stream, *free_, *idle;
  uint64_t address = 0, value = 0;
  int n = -7;
  Handle handle;
  (void)CALL(cudaGetLastError);
  SAY(cudaDeviceGetAttribute, &n, 115, 0);
  printf("pools %d\n", n);
  (void)CALL(cudaStreamCreateWithFlags, &stream, 1);
  (void)CALL(cudaStreamCreateWithFlags, &free_, 1);
  (void)CALL(cudaStreamCreateWithFlags, &idle, 1);
  SAY(cudaDeviceGetDefaultMemPool, NULL, 0);
  SAY(cudaDeviceGetDefaultMemPool, &pool, 100);
  SAY(cudaDeviceGetDefaultMemPool, &pool, 0);
  SAY(cudaDeviceGetMemPool, &current, 0);
  printf("the same %d\n", pool == current);
  say_pool("default pool", pool);
  SAY(cudaMallocAsync, NULL, 8, stream);
  SAY(cudaMallocAsync, &p, 0, stream);
  printf("is null %d\n", p == NULL);
  SAY(cudaMallocAsync, &p, (size_t)1 << 50, stream);
  SAY(cudaMallocAsync, &p, 4096, stream);
  say_attributes("a pool's memory", p);
  SAY(cudaMallocAsync, &q, 4096, NULL);
  printf("another %d\n", p != q);
  say_pool("two taken", pool);
  SAY(cudaIpcGetMemHandle, &handle, p);
  for (int attribute = 1; attribute <= 14; ++attribute)
    if (attribute != 3 && attribute != 5 && attribute != 12) say_attribute("a pool's memory", attribute, p);
  int flag = 1;
  SAY(cuPointerSetAttribute, &flag, 6, (uint64_t)(uintptr_t)p);
  SAY(cudaMemcpy, p, pageable, 64, h2d);
  SAY(cudaMemcpyAsync, q, p, 64, d2d, stream);
  SAY(cudaMemset, p, 0, 4097);
  SAY(cudaFreeAsync, NULL, stream);
  SAY(cudaFreeAsync, pageable, stream);
  SAY(cudaFreeAsync, pinned, stream);
  SAY(cudaFreeAsync, (char*)p + 512, stream);
  SAY(cudaFreeAsync, p, stream);
  SAY(cudaFreeAsync, p, stream);
  say_attributes("what was given back", p);
  SAY(cudaFreeAsync, q, NULL);
  SAY(cudaDeviceSynchronize);
  say_pool("all given back", pool);
  SAY(cudaMalloc, &p, 4096);
  SAY(cudaFreeAsync, p, stream);
  SAY(cudaDeviceSynchronize);
  SAY(cudaMemPoolTrimTo, pool, 0);
  SAY(cudaMemPoolTrimTo, NULL, 0);
  SAY(cudaMemPoolDestroy, pool);
  SAY(cudaMemPoolDestroy, NULL);
  value = 1 << 20;
  SAY(cudaMemPoolSetAttribute, pool, 4, &value);
  SAY(cudaMemPoolSetAttribute, pool, 5, &value);
  SAY(cudaMemPoolSetAttribute, pool, 99, &value);
  SAY(cudaMemPoolGetAttribute, pool, 99, &value);
  value = 0;
  SAY(cudaMemPoolSetAttribute, pool, 8, &value);
  say_pool("with a threshold", pool);
  value = 0;
  (void)CALL(cudaMemPoolSetAttribute, pool, 4, &value);

  PoolProperties properties = {1, 0, 1, 0, NULL, 0, 0, {0}}, wrong = {1, 0, 1, 100, NULL, 0, 0, {0}},
                 none = {0, 0, 1, 0, NULL, 0, 0, {0}};
  SAY(cudaMemPoolCreate, &own, NULL);
  SAY(cudaMemPoolCreate, NULL, &properties);
  SAY(cudaMemPoolCreate, &own, &wrong);
  SAY(cudaMemPoolCreate, &own, &none);
  SAY(cudaMemPoolCreate, &own, &properties);
  say_pool("own pool", own);
  SAY(cudaMallocFromPoolAsync, &p, 4096, own, stream);
  SAY(cudaMallocFromPoolAsync, &q, 4096, NULL, stream);
  SAY(cudaDeviceSetMemPool, 100, own);
  SAY(cudaDeviceSetMemPool, 0, NULL);
  SAY(cudaDeviceSetMemPool, 0, own);
  SAY(cudaDeviceGetMemPool, &current, 0);
  printf("the same %d\n", own == current);
  SAY(cudaMallocAsync, &q, 4096, stream);
  say_pool("own pool", own);
  SAY(cudaFreeAsync, q, stream);
  SAY(cudaFreeAsync, p, stream);
  SAY(cudaDeviceSynchronize);
  SAY(cudaMemPoolDestroy, own);
  SAY(cudaDeviceGetMemPool, &current, 0);
  printf("the default one %d\n", pool == current);

  SAY(cuDeviceGetDefaultMemPool, &current, 0);
  printf("the same %d\n", pool == current);
  SAY(cuMemAllocAsync, &address, 4096, stream);
  SAY(cuMemAllocAsync, NULL, 4096, stream);
  SAY(cuMemAllocAsync, &value, 0, stream);
  SAY(cuMemFreeAsync, address, stream);
  SAY(cuMemFreeAsync, 0, stream);
  SAY(cuMemFreeAsync, 1, stream);
  SAY(cuMemPoolTrimTo, current, 0);
  SAY(cudaDeviceSynchronize);
  (void)CALL(cudaGetLastError);

  // Memory is there when the call comes back, and goes behind the work of its stream.
  WAITS(free_, cudaMallocAsync, &p, 4096, free_);
  WAITS(free_, cudaFreeAsync, p, free_);
  WAITS(free_, cudaMallocAsync, &p, 4096, idle);
  WAITS(free_, cudaFreeAsync, p, idle);
  (void)CALL(cudaMallocAsync, &p, 4096, free_);
  (void)CALL(cudaDeviceSynchronize);
  keep_busy(free_);
  (void)CALL(cudaFreeAsync, p, free_);
  (void)CALL(cudaMallocAsync, &q, 4096, free_);
  printf("taken again in the same stream: %s\n", p == q ? "the same place" : "another place");
  (void)CALL(cudaFreeAsync, q, free_);
  (void)CALL(cudaMallocAsync, &p, 4096, idle);
  printf("taken by another stream: %s\n", p == q ? "the same place" : "another place");
  (void)CALL(cudaFreeAsync, p, idle);
  (void)CALL(cudaDeviceSynchronize);
  (void)CALL(cudaMallocAsync, &p, 4096, idle);
  WAITS(free_, cudaFree, p);
  SAY(cudaFree, p);
  SAY(cudaFreeAsync, p, idle);
  (void)CALL(cudaGetLastError);
}

static int called_back;
static void callback(void* stream, int status, void* argument) {
  (void)stream;
  called_back = status == 0 ? *(int*)argument : -1;
}

// What programs call beside all that.
static void others(void) {
  void *rows = NULL, *stream, *event, *free_;
  size_t pitch = 0, limit = 0;
  int n = -7, nine = 9;
  char first[600];
  (void)CALL(cudaStreamCreateWithFlags, &stream, 1);
  (void)CALL(cudaStreamCreateWithFlags, &free_, 1);
  (void)CALL(cudaEventCreate, &event);
  SAY(cudaMallocPitch, &rows, &pitch, 100, 10);
  printf("pitch %zu\n", pitch);
  (void)CALL(cudaFree, rows);
  SAY(cudaMallocPitch, &rows, &pitch, 0, 10);
  printf("is null %d, pitch %zu\n", rows == NULL, pitch);
  SAY(cudaMallocPitch, &rows, &pitch, 100, 0);
  printf("is null %d, pitch %zu\n", rows == NULL, pitch);
  SAY(cudaMallocPitch, NULL, &pitch, 100, 10);
  SAY(cudaMallocPitch, &rows, NULL, 100, 10);
  SAY(cudaMallocPitch, &rows, &pitch, 513, 10);
  printf("pitch %zu\n", pitch);
  (void)CALL(cudaMemset, rows, 0, 10 * pitch);
  SAY(cudaMemset2D, rows, pitch, 3, 100, 10);
  SAY(cudaMemset2D, rows, pitch, 3, pitch + 1, 10);
  SAY(cudaMemset2D, rows, 0, 3, 100, 10);
  SAY(cudaMemset2D, rows, pitch, 3, 0, 10);
  SAY(cudaMemset2D, rows, pitch, 3, 100, 0);
  SAY(cudaMemset2D, pageable, pitch, 3, 100, 10);
  SAY(cudaMemset2D, rows, pitch, 3, pitch, 11);
  SAY(cudaMemset2DAsync, rows, pitch, 4, 50, 1, stream);
  (void)CALL(cudaDeviceSynchronize);
  (void)CALL(cudaMemcpy, first, rows, sizeof first, d2h);
  printf("%d %d %d\n", first[49], first[99], first[100]);
  (void)CALL(cudaMemcpy, first, (char*)rows + pitch, sizeof first, d2h);
  printf("%d %d %d\n", first[0], first[99], first[100]);
  (void)CALL(cudaFree, rows);

  SAY(cudaMemPrefetchAsync, managed, room, 0, stream);
  SAY(cudaMemPrefetchAsync, managed, room, -1, stream);
  SAY(cudaMemPrefetchAsync, managed, room, 100, stream);
  SAY(cudaMemPrefetchAsync, device, room, 0, stream);
  SAY(cudaMemPrefetchAsync, NULL, room, 0, stream);
  SAY(cudaMemAdvise, managed, room, 1, 0);
  SAY(cudaMemAdvise, managed, room, 99, 0);
  SAY(cudaMemAdvise, managed, room, 3, 100);
  SAY(cudaMemAdvise, device, room, 1, 0);
  (void)CALL(cudaDeviceSynchronize);

  SAY(cudaDeviceSetLimit, 0, 4096);
  SAY(cudaDeviceGetLimit, &limit, 0);
  printf("stack %zu\n", limit);
  SAY(cudaDeviceSetLimit, 99, 1);
  SAY(cudaDeviceGetLimit, NULL, 0);
  SAY(cudaDeviceSetCacheConfig, 2);
  SAY(cudaDeviceSetCacheConfig, 99);
  SAY(cudaDeviceGetCacheConfig, &n);
  SAY(cudaStreamAddCallback, stream, callback, &nine, 0);
  (void)CALL(cudaStreamSynchronize, stream);
  printf("called %d\n", called_back);
  SAY(cudaStreamAddCallback, stream, NULL, &nine, 0);
  SAY(cudaStreamAddCallback, stream, callback, &nine, 1);
  n = -7;
  SAY(cudaStreamIsCapturing, stream, &n);
  printf("capturing %d\n", n);
  SAY(cudaStreamIsCapturing, stream, NULL);
  SAY(cudaEventRecordWithFlags, event, stream, 0);
  SAY(cudaEventRecordWithFlags, event, stream, 99);
  SAY(cudaProfilerStart);
  SAY(cudaProfilerStop);
  (void)CALL(cudaGetLastError);
  WAITS(free_, cudaStreamAddCallback, free_, callback, &nine, 0);
  WAITS(free_, cudaMemPrefetchAsync, managed, room, 0, free_);
  (void)CALL(cudaMallocPitch, &rows, &pitch, 100, 10);
  WAITS(free_, cudaMemset2D, rows, pitch, 3, 100, 10);
  WAITS(free_, cudaMemset2DAsync, rows, pitch, 3, 100, 10, free_);
  (void)CALL(cudaFree, rows);
  (void)CALL(cudaGetLastError);
}

static void errors(void) {
  static const int codes[] = {0,   1,   2,   3,   4,   17,  21,  34,  35,  36,  100, 101,
                              200, 201, 205, 208, 217, 219, 304, 400, 401, 500, 600, 700,
                              704, 705, 708, 709, 712, 713, 719, 800, 801, 802, 999, 5555};
  for (unsigned i = 0; i < sizeof codes / sizeof *codes; ++i) {
    const char *name = "-", *text = "-";
    const int code = CALL(cuGetErrorName, codes[i], &name);
    (void)CALL(cuGetErrorString, codes[i], &text);
    printf("%d: %s: %s; %d %s: %s\n", codes[i], CALL(cudaGetErrorName, codes[i]), CALL(cudaGetErrorString, codes[i]),
           code, name == NULL ? "null" : name, text == NULL ? "null" : text);
  }
}

int main(int argc, char** argv) {
#ifndef WITHOUT_MPI
  MPI_Init(&argc, &argv);
#endif
  if (argc > 1) many = atoi(argv[1]);
  setvbuf(stdout, NULL, _IONBF, 0);
  runtime = dlopen("libcudart.so.12", RTLD_NOW);
  driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (runtime == NULL || driver == NULL) {
    printf("%s\n", dlerror());
    return 1;
  }
  devices();
  allocation();
  pointers();
  copies();
  streams();
  ipc();
  waiting();
  driver_calls();
  errors();
  pools();
  others();
#ifndef WITHOUT_MPI
  MPI_Finalize();
#endif
  return 0;
}
