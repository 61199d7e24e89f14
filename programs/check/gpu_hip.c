// What HIP says of devices and pointers, as each of its releases says it: 5, 6 and 7 have a library each, all of one
// memory. What is not simulated says that.
#include <stdint.h>

#include "check.h"
#include "cudart.h"

enum { bytes = 3000, not_supported = 801, invalid_value = 1, invalid_pointer = 17 };

struct attributes {
  int type;
  int device;
  void* of_device;
  void* of_host;
  int managed;
  unsigned flags;
};

static int (*call(int release, const char* name))() {
  char file[32];
  snprintf(file, sizeof file, "libamdhip64.so.%d", release);
  void* library = dlopen(file, RTLD_NOW);
  REQUIRE(library != NULL, "%s", dlerror());
  return (int (*)())(uintptr_t)cuda_symbol(library, name);
}

static void pointers(int release) {
  int (*attributes_of)(void*, const void*) = (int (*)(void*, const void*))call(release, "hipPointerGetAttributes");
  int (*range_of)(void*, size_t*, void*) = (int (*)(void*, size_t*, void*))call(release, "hipMemGetAddressRange");
  int (*device_pointer)(void**, void*, unsigned) =
      (int (*)(void**, void*, unsigned))call(release, "hipHostGetDevicePointer");
  char *device, *pinned, *managed, *base;
  void* same;
  size_t length = 0;
  struct attributes found;
  CHECK(cuda.set(3) == 0 && cuda.malloc((void**)&device, bytes) == 0);
  CHECK(cuda.malloc_host((void**)&pinned, bytes) == 0 && cuda.malloc_managed((void**)&managed, bytes, 1) == 0);
  CHECK(attributes_of(&found, device + 7) == 0 && found.type == (release < 6 ? 1 : 2) && found.device == 3);
  CHECK(found.of_device == device + 7 && found.of_host == NULL && !found.managed);
  CHECK(attributes_of(&found, pinned) == 0 && found.type == (release < 6 ? 0 : 1) && found.of_host == pinned);
  CHECK(attributes_of(&found, managed) == 0 && found.type == (release < 6 ? 4 : 3) && found.managed);
  CHECK(attributes_of(&found, &found) == invalid_value);
  CHECK(attributes_of(&found, NULL) == (release < 7 ? invalid_value : 0));
  CHECK(range_of(&base, &length, device + bytes - 1) == 0 && base == device && length == bytes);
  CHECK(range_of(&base, &length, &found) == 500);
  CHECK(device_pointer(&same, pinned + 5, 0) == 0 && same == pinned + 5);
  CHECK(device_pointer(&same, device, 0) == invalid_value);
  CHECK(cuda.free(device) == 0 && cuda.free(managed) == 0 && cuda.free(device) == invalid_pointer);
}

static void errors(int release) {
  int (*set)(int) = (int (*)(int))call(release, "hipSetDevice");
  int (*last)(void) = (int (*)(void))call(release, "hipGetLastError");
  const char* (*name)(int) = (const char* (*)(int))(void*)call(release, "hipGetErrorName");
  const char* (*text)(int) = (const char* (*)(int))(void*)call(release, "hipGetErrorString");
  CHECK(set(8) == cuda_invalid_device && last() == cuda_invalid_device && last() == 0);
  CHECK(set(8) == cuda_invalid_device && set(0) == 0 && last() == (release < 7 ? 0 : cuda_invalid_device));
  CHECK(strcmp(name(600), "hipErrorNotReady") == 0 && strcmp(text(1), "invalid argument") == 0);
  for (const char* const* each = (const char* const[]){"hipModuleLaunchKernel", "hipIpcGetEventHandle",
                                                       "hipMemPoolExportPointer", "hipGraphCreate", NULL};
       *each != NULL; ++each) {
    CHECK(call(release, *each)() == not_supported);
  }
  CHECK(call(release, "hipDeviceReset")() == 0);
}

static void devices(int release) {
  int (*properties)(void*, int) =
      (int (*)(void*, int))call(release, release < 6 ? "hipGetDeviceProperties" : "hipGetDevicePropertiesR0600");
  int (*address_of)(char*, int, int) = (int (*)(char*, int, int))call(release, "hipDeviceGetPCIBusId");
  int (*device_at)(int*, const char*) = (int (*)(int*, const char*))call(release, "hipDeviceGetByPCIBusId");
  int (*enable)(int, unsigned) = (int (*)(int, unsigned))call(release, "hipDeviceEnablePeerAccess");
  int (*disable)(int) = (int (*)(int))call(release, "hipDeviceDisablePeerAccess");
  static char room[1472];
  char address[16];
  int device = -1;
  CHECK(properties(room, 7) == 0 && strcmp(room, "simulated GPU") == 0);
  CHECK(*(uint64_t*)(void*)(room + (release < 6 ? 256 : 288)) == 68702699520u);
  CHECK(strncmp(room + (release < 6 ? 396 : 1160), "gfx90a", 6) == 0);
  CHECK(address_of(address, sizeof address, 7) == 0 && device_at(&device, address) == 0 && device == 7);
  CHECK(properties(room, 8) == cuda_invalid_device);
  CHECK(cuda.set(0) == 0 && enable(1, 0) == 0 && enable(1, 0) == 704 && disable(1) == 0 && disable(1) == 705);
  CHECK(enable(0, 0) == cuda_invalid_device);
}

// Of the second device, as a stream takes and gives back.
static void pools(int release) {
  int (*standard)(void**, int) = (int (*)(void**, int))call(release, "hipDeviceGetDefaultMemPool");
  int (*take)(void**, size_t, void*) = (int (*)(void**, size_t, void*))call(release, "hipMallocAsync");
  int (*take_from)(void**, size_t, void*, void*) =
      (int (*)(void**, size_t, void*, void*))call(release, "hipMallocFromPoolAsync");
  int (*give_back)(void*, void*) = (int (*)(void*, void*))call(release, "hipFreeAsync");
  int (*read)(void*, int, void*) = (int (*)(void*, int, void*))call(release, "hipMemPoolGetAttribute");
  int (*write)(void*, int, void*) = (int (*)(void*, int, void*))call(release, "hipMemPoolSetAttribute");
  void *pool = NULL, *stream = NULL, *first = NULL, *second = NULL;
  uint64_t reserved = 0, used = 0, threshold = UINT64_MAX;
  CHECK(cuda.set(1) == 0 && standard(&pool, 1) == 0 && cuda.stream(&stream) == 0);
  CHECK(take(&first, bytes, stream) == 0 && take_from(&second, bytes, pool, stream) == 0 && first != second);
  CHECK(read(pool, 7, &used) == 0 && used == 2 * bytes && read(pool, 5, &reserved) == 0 && reserved >= used);
  CHECK(cuda.fill(first, 7, bytes) == 0 && give_back(first, stream) == 0 && give_back(first, stream) == invalid_value);
  CHECK(give_back(second, stream) == 0 && cuda.stream_synchronize(stream) == 0);
  CHECK(read(pool, 5, &reserved) == 0 && reserved == 0);
  CHECK(write(pool, 4, &threshold) == 0 && take(&first, bytes, stream) == 0 && give_back(first, stream) == 0);
  CHECK(cuda.stream_synchronize(stream) == 0 && read(pool, 5, &reserved) == 0 && reserved > 0);
  threshold = 0;
  CHECK(write(pool, 4, &threshold) == 0 && cuda.stream_synchronize(stream) == 0);
}

int main(int argc, char** argv) {
  check_begin(&argc, &argv);
  load_cuda();
  for (int release = 5; release <= 7; ++release) {
    pointers(release);
    errors(release);
    devices(release);
    pools(release);
  }
  return check_end("gpu_hip");
}
