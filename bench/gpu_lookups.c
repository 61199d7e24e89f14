/* What it costs the processor to ask the simulated GPU runtime what a pointer points to, as a program asks the runtime,
 * a library the driver, and Open MPI its component, of memory of a device with 1,000 allocations, of pinned memory and
 * registered memory in as many, and of memory that no device knows. Prints the median over the rounds of each, in
 * nanoseconds of this thread's CPU time a look-up, and of a call of the C library by a pointer, which does next to
 * nothing. Started by gpu-lookups.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { batch = 1000, rounds = 300, warm_up = 50, allocations = 1000, memory_type = 2 };

struct attributes {
  int type, device;
  void *device_pointer, *host_pointer;
};

static int (*get_attributes)(struct attributes*, const void*);
static int (*get_attribute)(void*, int, uint64_t);
static int (*check_address)(const void*, int*, uint64_t*);
static long (*absolute)(long);
static volatile long sink;

/* Straight from the kernel: dryfly's preload answers the library's clock calls with virtual time. */
static double now_ns(void) {
  struct timespec time;
  syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void by_runtime(const void* pointer) {
  struct attributes attributes;
  sink = get_attributes(&attributes, pointer);
}
static void by_driver(const void* pointer) {
  unsigned type;
  sink = get_attribute(&type, memory_type, (uintptr_t)pointer);
}
static void by_component(const void* pointer) {
  int device;
  uint64_t flags;
  sink = check_address(pointer, &device, &flags);
}
static void bare(const void* pointer) { sink = absolute((long)pointer); }

static int ascending(const void* a, const void* b) {
  return (*(const double*)a > *(const double*)b) - (*(const double*)a < *(const double*)b);
}

static double each_ns(void (*ask)(const void*), char* const* pointers) {
  static double values[rounds];
  for (int round = 0; round < rounds; ++round) {
    const double start = now_ns();
    for (int i = 0; i < batch; ++i) ask(pointers[(i * 7) % allocations] + 1);
    values[round] = (now_ns() - start) / batch;
  }
  qsort(values + warm_up, rounds - warm_up, sizeof *values, ascending);
  return values[warm_up + (rounds - warm_up) / 2];
}

static void* symbol(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == NULL) {
    printf("no %s: %s\n", name, dlerror());
    exit(1);
  }
  return found;
}

int main(int argc, char** argv) {
  static char *device[allocations], *pinned[allocations], *registered[allocations], *host[allocations];
  MPI_Init(&argc, &argv);
  void* runtime = dlopen("libcudart.so.12", RTLD_NOW);
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  int (*allocate)(void**, size_t);
  int (*allocate_host)(void**, size_t);
  int (*make_known)(void*, size_t, unsigned);
  *(void**)&allocate = symbol(runtime, "cudaMalloc");
  *(void**)&allocate_host = symbol(runtime, "cudaMallocHost");
  *(void**)&make_known = symbol(runtime, "cudaHostRegister");
  *(void**)&get_attributes = symbol(runtime, "cudaPointerGetAttributes");
  *(void**)&get_attribute = symbol(driver, "cuPointerGetAttribute");
  *(void**)&check_address = *(void**)symbol(RTLD_DEFAULT, "opal_accelerator");
  *(void**)&absolute = symbol(RTLD_DEFAULT, "labs");
  for (int i = 0; i < allocations; ++i) {
    host[i] = malloc(4096);
    if (allocate((void**)&device[i], 4096) != 0 || allocate_host((void**)&pinned[i], 4096) != 0) return 1;
  }
  const struct {
    const char* name;
    void (*ask)(const void*);
  } ways[] = {{"runtime", by_runtime}, {"driver", by_driver}, {"component", by_component}};
  const struct {
    const char* name;
    char* const* pointers;
  } kinds[] = {{"device", device}, {"pinned", pinned}, {"host", host}, {"registered", registered}};
  for (int kind = 0; kind < 4; ++kind) {
    for (int i = 0; kinds[kind].pointers == registered && i < allocations; ++i) {
      registered[i] = malloc(4096);
      if (make_known(registered[i], 4096, 0) != 0) return 1;
    }
    for (int way = 0; way < 3; ++way) {
      printf("%s-%s %.2f\n", ways[way].name, kinds[kind].name, each_ns(ways[way].ask, kinds[kind].pointers));
    }
  }
  printf("bare %.2f\n", each_ns(bare, host));
  MPI_Finalize();
}
