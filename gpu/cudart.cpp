// libcudart.so.12: the runtime's calls that MPI libraries and their users make, over gpu/runtime.hpp. What is not
// simulated answers cudaErrorNotSupported. Left out: kernels, graphs, textures, CUDA arrays, IPC.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "gpu/cuda_codes.hpp"
#include "gpu/pci.hpp"
#include "gpu/runtime.hpp"

#define CUDA_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace dryfly::gpu;
using cuda::code_of;

thread_local int last_error = 0;

// Waiting for something is no failure that is kept.
int kept(int code) {
  if (code != cuda::success && code != cuda::not_ready) last_error = code;
  return code;
}
int kept(Result result) { return kept(code_of(result)); }

Runtime& runtime() { return Runtime::get(); }

int device_code(int device) {
  if (runtime().settings().devices == 0) return cuda::no_device;
  return device >= 0 && device < runtime().settings().devices ? cuda::success : cuda::invalid_device;
}

struct PointerAttributes {
  int type;  // 0 unregistered, 1 host, 2 device, 3 managed
  int device;
  void* device_pointer;
  void* host_pointer;
};

constexpr int driver_version = 12040;

// What is filled in of cudaDeviceProp of CUDA 12, and how long it is. The rest is zero.
struct DeviceProperties {
  char name[256];
  char ids[32];  // of the device, and of the display that it is part of
  std::size_t memory_bytes;
  char others[288];
  int pci_bus, pci_device, pci_domain;
};
static_assert(offsetof(DeviceProperties, pci_bus) == 584);
constexpr std::size_t properties_bytes = 1032;

}  // namespace

CUDA_EXPORT int cudaGetDeviceCount(int* count) {
  if (count == nullptr) return kept(cuda::invalid_value);
  *count = runtime().settings().devices;
  return kept(*count == 0 ? cuda::no_device : cuda::success);
}
CUDA_EXPORT int cudaGetDevice(int* device) {
  if (device == nullptr) return kept(cuda::invalid_value);
  if (runtime().settings().devices == 0) return kept(cuda::no_device);
  *device = runtime().device();
  return cuda::success;
}
CUDA_EXPORT int cudaSetDevice(int device) {
  if (const int code = device_code(device); code != cuda::success) return kept(code);
  return kept(runtime().set_device(device));
}
CUDA_EXPORT int cudaGetDeviceProperties_v2(void* to, int device) {
  if (to == nullptr) return kept(cuda::invalid_value);
  if (const int code = device_code(device); code != cuda::success) return kept(code);
  memset(to, 0, properties_bytes);
  auto& properties = *static_cast<DeviceProperties*>(to);
  memcpy(properties.name, "simulated GPU", sizeof "simulated GPU");
  properties.memory_bytes = runtime().settings().memory_bytes;
  properties.pci_domain = pci_domain;
  properties.pci_bus = pci_bus(runtime().settings(), device);
  return cuda::success;
}
CUDA_EXPORT int cudaDeviceGetPCIBusId(char* to, int length, int device) {
  if (to == nullptr || length <= 0) return kept(cuda::invalid_value);
  if (const int code = device_code(device); code != cuda::success) return kept(code);
  write_pci(runtime().settings(), device, to, static_cast<size_t>(length));
  return cuda::success;
}
CUDA_EXPORT int cudaDeviceGetByPCIBusId(int* device, const char* address) {
  if (device == nullptr || address == nullptr) return kept(cuda::invalid_value);
  const int found = device_at_pci(runtime().settings(), address);
  if (found < 0) return kept(cuda::invalid_device);
  *device = found;
  return cuda::success;
}
CUDA_EXPORT int cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return kept(cuda::invalid_value);
  *version = driver_version;
  return cuda::success;
}
CUDA_EXPORT int cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }
CUDA_EXPORT int cudaGetLastError() {
  const int code = last_error;
  last_error = 0;
  return code;
}
CUDA_EXPORT int cudaPeekAtLastError() { return last_error; }
CUDA_EXPORT const char* cudaGetErrorString(int code) { return cuda::name_of(code); }
CUDA_EXPORT const char* cudaGetErrorName(int code) { return cuda::name_of(code); }

CUDA_EXPORT int cudaMalloc(void** pointer, size_t bytes) {
  if (pointer == nullptr) return kept(cuda::invalid_value);
  return kept(runtime().allocate(Kind::device, bytes, *pointer));
}
CUDA_EXPORT int cudaMallocManaged(void** pointer, size_t bytes, unsigned) {
  if (pointer == nullptr || bytes == 0) return kept(cuda::invalid_value);
  return kept(runtime().allocate(Kind::managed, bytes, *pointer));
}
CUDA_EXPORT int cudaMallocHost(void** pointer, size_t bytes) {
  if (pointer == nullptr) return kept(cuda::invalid_value);
  return kept(runtime().allocate(Kind::pinned, bytes, *pointer));
}
CUDA_EXPORT int cudaHostAlloc(void** pointer, size_t bytes, unsigned) { return cudaMallocHost(pointer, bytes); }
CUDA_EXPORT int cudaFree(void* pointer) { return kept(runtime().release(pointer, false)); }
CUDA_EXPORT int cudaFreeHost(void* pointer) { return kept(runtime().release(pointer, true)); }
CUDA_EXPORT int cudaHostRegister(void* start, size_t bytes, unsigned) {
  return kept(runtime().register_host(start, bytes));
}
CUDA_EXPORT int cudaHostUnregister(void* start) { return kept(runtime().unregister_host(start)); }
CUDA_EXPORT int cudaMemGetInfo(size_t* unused, size_t* all) {
  if (unused == nullptr || all == nullptr) return kept(cuda::invalid_value);
  if (runtime().settings().devices == 0) return kept(cuda::no_device);
  runtime().memory_info(*unused, *all);
  return cuda::success;
}
CUDA_EXPORT int cudaPointerGetAttributes(PointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr) return kept(cuda::invalid_value);
  if (runtime().settings().devices == 0) return kept(cuda::no_device);
  const Place place = runtime().place_of(pointer);
  void* const same = const_cast<void*>(pointer);
  switch (place.kind) {
    case Kind::host:
      *attributes = {0, -2, nullptr, same};  // cudaInvalidDeviceId
      break;
    case Kind::registered:
    case Kind::pinned:
      *attributes = {1, place.device, same, same};
      break;
    case Kind::managed:
      *attributes = {3, place.device, same, same};
      break;
    case Kind::device:
      *attributes = {2, place.device, same, nullptr};
      break;
  }
  return cuda::success;
}

CUDA_EXPORT int cudaMemcpy(void* to, const void* from, size_t bytes, int) {
  return kept(runtime().copy(to, from, bytes, nullptr, true));
}
CUDA_EXPORT int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int, Stream* stream) {
  return kept(runtime().copy(to, from, bytes, stream, false));
}
CUDA_EXPORT int cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
  return kept(runtime().copy(to, from, bytes, nullptr, true));
}
CUDA_EXPORT int cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes, Stream* stream) {
  return kept(runtime().copy(to, from, bytes, stream, false));
}
CUDA_EXPORT int cudaMemset(void* to, int value, size_t bytes) {
  return kept(runtime().fill(to, value, bytes, nullptr, false));
}
CUDA_EXPORT int cudaMemsetAsync(void* to, int value, size_t bytes, Stream* stream) {
  return kept(runtime().fill(to, value, bytes, stream, false));
}

CUDA_EXPORT int cudaStreamCreateWithFlags(Stream** stream, unsigned flags) {
  if (stream == nullptr || flags > 1) return kept(cuda::invalid_value);
  return kept(runtime().create(*stream, flags == 0));
}
CUDA_EXPORT int cudaStreamCreate(Stream** stream) { return cudaStreamCreateWithFlags(stream, 0); }
CUDA_EXPORT int cudaStreamCreateWithPriority(Stream** stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
CUDA_EXPORT int cudaStreamDestroy(Stream* stream) { return kept(runtime().destroy(stream)); }
CUDA_EXPORT int cudaStreamQuery(Stream* stream) { return kept(runtime().query(stream)); }
CUDA_EXPORT int cudaStreamSynchronize(Stream* stream) { return kept(runtime().synchronize(stream)); }
CUDA_EXPORT int cudaStreamWaitEvent(Stream* stream, Event* event, unsigned) {
  return kept(runtime().wait(stream, event));
}
CUDA_EXPORT int cudaDeviceSynchronize() { return kept(runtime().synchronize_device()); }

CUDA_EXPORT int cudaEventCreateWithFlags(Event** event, unsigned) {
  if (event == nullptr) return kept(cuda::invalid_value);
  return kept(runtime().create(*event));
}
CUDA_EXPORT int cudaEventCreate(Event** event) { return cudaEventCreateWithFlags(event, 0); }
CUDA_EXPORT int cudaEventDestroy(Event* event) { return kept(runtime().destroy(event)); }
CUDA_EXPORT int cudaEventRecord(Event* event, Stream* stream) { return kept(runtime().record(event, stream)); }
CUDA_EXPORT int cudaEventQuery(Event* event) { return kept(runtime().query(event)); }
CUDA_EXPORT int cudaEventSynchronize(Event* event) { return kept(runtime().synchronize(event)); }
CUDA_EXPORT int cudaEventElapsedTime(float* ms, Event* begin, Event* end) {
  if (ms == nullptr) return kept(cuda::invalid_value);
  return kept(runtime().elapsed(begin, end, *ms));
}

CUDA_EXPORT int cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (can == nullptr) return kept(cuda::invalid_value);
  if (device_code(device) != cuda::success || device_code(peer) != cuda::success) return kept(cuda::invalid_device);
  *can = device != peer ? 1 : 0;
  return cuda::success;
}
CUDA_EXPORT int cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  if (flags != 0) return kept(cuda::invalid_value);
  if (device_code(peer) != cuda::success || peer == runtime().device()) return kept(cuda::invalid_device);
  return cuda::success;  // copies between devices go over their link with and without it
}

CUDA_EXPORT int cudaIpcGetMemHandle(void*, void*) { return kept(cuda::not_supported); }
CUDA_EXPORT int cudaIpcCloseMemHandle(void*) { return kept(cuda::not_supported); }
CUDA_EXPORT int cudaLaunchHostFunc(Stream*, void (*)(void*), void*) { return kept(cuda::not_supported); }
CUDA_EXPORT int cudaLaunchKernel(const void*, ...) { return kept(cuda::not_supported); }
CUDA_EXPORT int cudaIpcOpenMemHandle(void**, ...) { return kept(cuda::not_supported); }
