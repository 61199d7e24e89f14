// libcudart.so.12: the runtime's calls that MPI libraries and their users make, over gpu/runtime.hpp. What is not
// simulated answers cudaErrorNotSupported. What is answered to right and wrong calls is a real runtime's answer
// (programs/check/gpu_answers.txt). Left out: graphs, textures, CUDA arrays, events between processes.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "gpu/common_calls.hpp"
#include "gpu/cuda_attributes.hpp"
#include "gpu/cuda_codes.hpp"
#include "gpu/cuda_pools.hpp"
#include "gpu/kernels.hpp"
#include "gpu/pci.hpp"
#include "gpu/runtime.hpp"
#include "gpu/streams.hpp"

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
Streams& streams() { return Streams::get(); }

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
constexpr unsigned host_flags = 7;  // portable, mapped, write-combined
constexpr unsigned register_flags = 15;
constexpr unsigned event_without_time = 2;

bool peers_enabled[devices_max][devices_max];

// What a copy's direction calls a device's may be the host's if a device knows it, and the other way round; memory that
// no device knows has to be called the host's.
int direction_code(const void* to, const void* from, size_t bytes, int direction) {
  constexpr int in = 1, out = 2, within = 3, any = 4;
  if (direction < 0 || direction > any) return cuda::invalid_direction;
  if (direction == any || bytes == 0) return cuda::success;
  if ((direction == out || direction == within) && runtime().place_of(from).kind == Kind::host) {
    return cuda::invalid_value;
  }
  if ((direction == in || direction == within) && runtime().place_of(to).kind == Kind::host) return cuda::invalid_value;
  return cuda::success;
}

int rows_code(const void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, int direction) {
  return width > to_pitch || width > from_pitch ? cuda::invalid_pitch : direction_code(to, from, width, direction);
}

// Between the two calls that NVIDIA's compiler makes of one launch.
struct Configuration {
  Shape grid;
  Shape block;
  size_t shared_bytes;
  Stream* stream;
};
thread_local Configuration configuration;

// What is filled in of cudaDeviceProp of CUDA 12, and how long it is. The rest is zero.
struct DeviceProperties {
  char name[256];
  char ids[32];  // of the device, and of the display that it is part of
  std::size_t memory_bytes;
  char shared_memory_and_registers[12];
  int warp;
  std::size_t pitch_most;
  int block_most, block_sides_most[3], grid_sides_most[3];
  char clock_and_constants[12];
  int major, minor;
  char textures[20];
  int multiprocessors;
  char others[192];
  int pci_bus, pci_device, pci_domain, is_tesla, copy_engines, has_unified_addresses;
  int memory_clock, memory_width, cache_bytes, kept_cache_bytes, resident_threads;
  char features[24];
  int has_managed_memory;
  char more_features[20];
  int has_shared_managed_memory;
};
static_assert(offsetof(DeviceProperties, has_managed_memory) == 652 &&
              offsetof(DeviceProperties, has_shared_managed_memory) == 676);
static_assert(offsetof(DeviceProperties, warp) == 308 && offsetof(DeviceProperties, block_most) == 320);
static_assert(offsetof(DeviceProperties, major) == 360 && offsetof(DeviceProperties, multiprocessors) == 388);
static_assert(offsetof(DeviceProperties, pci_bus) == 584 && offsetof(DeviceProperties, copy_engines) == 600);
constexpr std::size_t properties_bytes = 1032;

Limits limits;
int cache_preference = 0;

constexpr int on_the_host = -1;                     // cudaCpuDeviceId
constexpr int advice_most = 6, without_device = 2;  // of hints: the last, and those up to which no device is named

int managed_code(const void* pointer, int device) {
  if (!is_managed(pointer)) return cuda::invalid_value;
  return device == on_the_host ? cuda::success : device_code(device);
}

// The first fields of cudaFuncAttributes; those behind them are left alone.
struct KernelAttributes {
  size_t shared_bytes, constant_bytes, local_bytes;
  int threads_most, registers, ptx_version, binary_version, cache_mode, dynamic_shared_bytes_most, carve_out;
};
constexpr int shared_bytes_most = 64 << 10;
constexpr int resident_threads = 2048, resident_blocks_most = 32;

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
  properties.warp = 32;
  properties.block_most = 1024;
  constexpr int block[] = {1024, 1024, 64}, grid[] = {2147483647, 65535, 65535};
  memcpy(properties.block_sides_most, block, sizeof block);
  memcpy(properties.grid_sides_most, grid, sizeof grid);
  properties.major = runtime().settings().capability / 10;
  properties.minor = runtime().settings().capability % 10;
  properties.multiprocessors = runtime().settings().multiprocessors;
  properties.copy_engines = 2;
  properties.has_unified_addresses = 1;
  properties.resident_threads = resident_threads;
  properties.has_managed_memory = 1;
  properties.has_shared_managed_memory = 1;
  properties.pci_domain = pci_domain;
  properties.pci_bus = pci_bus(runtime().settings(), device);
  return cuda::success;
}
CUDA_EXPORT int cudaDeviceGetPCIBusId(char* to, int length, int device) {
  constexpr int address_bytes = 13;
  if (to == nullptr || length < address_bytes) return kept(cuda::invalid_value);
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
CUDA_EXPORT const char* cudaGetErrorName(int code) { return cuda::runtime_name(code); }
CUDA_EXPORT const char* cudaGetErrorString(int code) {
  const char* const text = cuda::text_of(code);
  return text != nullptr ? text : cuda::runtime_name(code);
}

CUDA_EXPORT int cudaMalloc(void** pointer, size_t bytes) {
  if (pointer == nullptr) return kept(cuda::invalid_value);
  return kept(runtime().allocate(Kind::device, bytes, *pointer));
}
CUDA_EXPORT int cudaMallocManaged(void** pointer, size_t bytes, unsigned flags) {
  if (pointer == nullptr || (bytes != 0 && flags != 1 && flags != 2)) return kept(cuda::invalid_value);
  return kept(runtime().allocate(Kind::managed, bytes, *pointer));
}
CUDA_EXPORT int cudaMallocHost(void** pointer, size_t bytes) {
  if (pointer == nullptr) return kept(cuda::invalid_value);
  return kept(runtime().allocate(Kind::pinned, bytes, *pointer));
}
CUDA_EXPORT int cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  return (flags & ~host_flags) == 0 ? cudaMallocHost(pointer, bytes) : kept(cuda::invalid_value);
}
CUDA_EXPORT int cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return kept(allocate_rows(pointer, pitch, width, height));
}
CUDA_EXPORT int cudaFree(void* pointer) { return kept(runtime().release(pointer, false)); }
CUDA_EXPORT int cudaFreeHost(void* pointer) { return kept(runtime().release(pointer, true)); }
CUDA_EXPORT int cudaHostRegister(void* start, size_t bytes, unsigned flags) {
  if ((flags & ~register_flags) != 0) return kept(cuda::invalid_value);
  return kept(runtime().register_host(start, bytes));
}
CUDA_EXPORT int cudaHostGetDevicePointer(void** to, void* pointer, unsigned flags) {
  if (to == nullptr || flags != 0) return kept(cuda::invalid_value);
  const Kind kind = runtime().place_of(pointer).kind;
  if (kind != Kind::pinned && kind != Kind::registered) return kept(cuda::invalid_value);
  *to = pointer;
  return cuda::success;
}
CUDA_EXPORT int cudaHostGetFlags(unsigned* flags, void* pointer) {
  if (flags == nullptr || runtime().place_of(pointer).kind != Kind::pinned) return kept(cuda::invalid_value);
  *flags = 2;  // cudaHostAllocMapped, as all of it is
  return cuda::success;
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

CUDA_EXPORT int cudaMallocAsync(void** pointer, size_t bytes, Stream* stream) {
  if (pointer == nullptr) return kept(cuda::invalid_value);
  return kept(runtime().take_in_stream(nullptr, bytes, stream, *pointer));
}
CUDA_EXPORT int cudaMallocFromPoolAsync(void** pointer, size_t bytes, MemoryPool* pool, Stream* stream) {
  if (pointer == nullptr || pool == nullptr) return kept(cuda::invalid_value);
  return kept(runtime().take_in_stream(pool, bytes, stream, *pointer));
}
CUDA_EXPORT int cudaFreeAsync(void* pointer, Stream* stream) {
  return kept(runtime().give_back_in_stream(pointer, stream));
}
CUDA_EXPORT int cudaDeviceGetDefaultMemPool(MemoryPool** pool, int device) {
  return kept(cuda::pool_of(pool, device, true));
}
CUDA_EXPORT int cudaDeviceGetMemPool(MemoryPool** pool, int device) { return kept(cuda::pool_of(pool, device, false)); }
CUDA_EXPORT int cudaDeviceSetMemPool(int device, MemoryPool* pool) { return kept(runtime().set_pool(device, pool)); }
CUDA_EXPORT int cudaMemPoolCreate(MemoryPool** pool, const cuda::PoolProperties* properties) {
  return kept(cuda::create_pool(pool, properties));
}
CUDA_EXPORT int cudaMemPoolDestroy(MemoryPool* pool) { return kept(runtime().destroy(pool)); }
CUDA_EXPORT int cudaMemPoolTrimTo(MemoryPool* pool, size_t keep) { return kept(runtime().trim(pool, keep)); }
CUDA_EXPORT int cudaMemPoolGetAttribute(MemoryPool* pool, int attribute, void* value) {
  return kept(runtime().read(pool, attribute, value));
}
CUDA_EXPORT int cudaMemPoolSetAttribute(MemoryPool* pool, int attribute, void* value) {
  return kept(runtime().write(pool, attribute, value));
}

CUDA_EXPORT int cudaMemcpy(void* to, const void* from, size_t bytes, int direction) {
  if (const int code = direction_code(to, from, bytes, direction); code != cuda::success) return kept(code);
  return kept(streams().copy(to, from, bytes, nullptr, Returning::when_safe));
}
CUDA_EXPORT int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int direction, Stream* stream) {
  if (const int code = direction_code(to, from, bytes, direction); code != cuda::success) return kept(code);
  return kept(streams().copy(to, from, bytes, stream, Returning::at_once));
}
CUDA_EXPORT int cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                             size_t height, int direction) {
  const int code = rows_code(to, to_pitch, from, from_pitch, width, direction);
  if (code != cuda::success) return kept(code);
  return kept(streams().copy(to, from, Rows{width, height, to_pitch, from_pitch}, nullptr, Returning::when_safe));
}
CUDA_EXPORT int cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                                  size_t height, int direction, Stream* stream) {
  const int code = rows_code(to, to_pitch, from, from_pitch, width, direction);
  if (code != cuda::success) return kept(code);
  return kept(streams().copy(to, from, Rows{width, height, to_pitch, from_pitch}, stream, Returning::at_once));
}
CUDA_EXPORT int cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes) {
  if (device_code(to_device) != cuda::success) return kept(device_code(to_device));
  if (device_code(from_device) != cuda::success) return kept(device_code(from_device));
  return kept(streams().copy(to, from, bytes, nullptr, Returning::when_safe));
}
CUDA_EXPORT int cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                    Stream* stream) {
  if (device_code(to_device) != cuda::success) return kept(device_code(to_device));
  if (device_code(from_device) != cuda::success) return kept(device_code(from_device));
  return kept(streams().copy(to, from, bytes, stream, Returning::at_once));
}
CUDA_EXPORT int cudaMemset(void* to, int value, size_t bytes) {
  return kept(streams().fill(to, value, bytes, nullptr, Returning::when_safe));
}
CUDA_EXPORT int cudaMemsetAsync(void* to, int value, size_t bytes, Stream* stream) {
  return kept(streams().fill(to, value, bytes, stream, Returning::at_once));
}

CUDA_EXPORT int cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return kept(fill_rows(to, pitch, value, width, height, nullptr, Returning::when_safe));
}
CUDA_EXPORT int cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, Stream* stream) {
  return kept(fill_rows(to, pitch, value, width, height, stream, Returning::at_once));
}
CUDA_EXPORT int cudaMemPrefetchAsync(const void* pointer, size_t, int device, Stream* stream) {
  bool blocking = true;
  if (const int code = managed_code(pointer, device); code != cuda::success) return kept(code);
  return kept(streams().is_blocking(stream, blocking));
}
CUDA_EXPORT int cudaMemAdvise(const void* pointer, size_t, int advice, int device) {
  if (advice < 1 || advice > advice_most) return kept(cuda::invalid_value);
  return kept(managed_code(pointer, advice <= without_device ? on_the_host : device));
}

CUDA_EXPORT int cudaStreamCreateWithFlags(Stream** stream, unsigned flags) {
  if (stream == nullptr || flags > 1) return kept(cuda::invalid_value);
  return kept(streams().create(*stream, flags == 0));
}
CUDA_EXPORT int cudaStreamCreate(Stream** stream) { return cudaStreamCreateWithFlags(stream, 0); }
CUDA_EXPORT int cudaStreamCreateWithPriority(Stream** stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
CUDA_EXPORT int cudaStreamGetFlags(Stream* stream, unsigned* flags) {
  if (flags == nullptr) return kept(cuda::invalid_value);
  bool blocking = true;
  const int code = kept(streams().is_blocking(stream, blocking));
  *flags = blocking ? 0 : 1;
  return code;
}
// All streams have one priority: copies do not overtake each other.
CUDA_EXPORT int cudaStreamGetPriority(Stream* stream, int* priority) {
  if (priority == nullptr) return kept(cuda::invalid_value);
  bool blocking = true;
  *priority = 0;
  return kept(streams().is_blocking(stream, blocking));
}
CUDA_EXPORT int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = 0;
  return cuda::success;
}
CUDA_EXPORT int cudaStreamDestroy(Stream* stream) { return kept(streams().destroy(stream)); }
CUDA_EXPORT int cudaStreamQuery(Stream* stream) { return kept(streams().query(stream)); }
CUDA_EXPORT int cudaStreamSynchronize(Stream* stream) { return kept(streams().synchronize(stream)); }
CUDA_EXPORT int cudaStreamWaitEvent(Stream* stream, Event* event, unsigned flags) {
  if (flags > 1) return kept(cuda::invalid_value);
  return kept(streams().wait(stream, event));
}
CUDA_EXPORT int cudaDeviceSynchronize() { return kept(streams().synchronize_device()); }

CUDA_EXPORT int cudaEventCreateWithFlags(Event** event, unsigned flags) {
  if (event == nullptr || flags > 7) return kept(cuda::invalid_value);
  return kept(streams().create(*event, (flags & event_without_time) == 0));
}
CUDA_EXPORT int cudaEventCreate(Event** event) { return cudaEventCreateWithFlags(event, 0); }
CUDA_EXPORT int cudaEventDestroy(Event* event) { return kept(streams().destroy(event)); }
CUDA_EXPORT int cudaEventRecord(Event* event, Stream* stream) { return kept(streams().record(event, stream)); }
CUDA_EXPORT int cudaEventRecordWithFlags(Event* event, Stream* stream, unsigned flags) {
  constexpr unsigned external = 1;  // of a graph's
  return (flags & ~external) == 0 ? cudaEventRecord(event, stream) : kept(cuda::invalid_value);
}
CUDA_EXPORT int cudaEventQuery(Event* event) { return kept(streams().query(event)); }
CUDA_EXPORT int cudaEventSynchronize(Event* event) { return kept(streams().synchronize(event)); }
CUDA_EXPORT int cudaEventElapsedTime(float* ms, Event* begin, Event* end) {
  if (ms == nullptr) return kept(cuda::invalid_value);
  return kept(streams().elapsed(begin, end, *ms));
}

CUDA_EXPORT int cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (can == nullptr) return kept(cuda::invalid_value);
  if (device_code(device) != cuda::success || device_code(peer) != cuda::success) return kept(cuda::invalid_device);
  *can = device != peer ? 1 : 0;
  return cuda::success;
}
CUDA_EXPORT int cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  if (flags != 0) return kept(cuda::invalid_value);
  if (device_code(peer) != cuda::success) return kept(cuda::invalid_device);
  if (peer == runtime().device()) return kept(cuda::peer_access_unsupported);
  bool& enabled = peers_enabled[runtime().device()][peer];
  if (enabled) return kept(cuda::peer_access_already_enabled);
  enabled = true;  // for this answer only: copies between devices go over their link with and without it
  return cuda::success;
}
CUDA_EXPORT int cudaDeviceDisablePeerAccess(int peer) {
  if (device_code(peer) != cuda::success) return kept(cuda::invalid_device);
  bool& enabled = peers_enabled[runtime().device()][peer];
  if (!enabled) return kept(cuda::peer_access_not_enabled);
  enabled = false;
  return cuda::success;
}
CUDA_EXPORT int cudaDeviceGetAttribute(int* value, int attribute, int device) {
  if (value == nullptr) return kept(cuda::invalid_value);
  if (const int code = device_code(device); code != cuda::success) return kept(code);
  return kept(cuda::attribute(runtime().settings(), device, attribute, *value) ? cuda::success : cuda::invalid_value);
}
CUDA_EXPORT int cudaSetDeviceFlags(unsigned flags) {
  return kept((flags & ~0x3fU) == 0 ? cuda::success : cuda::invalid_value);
}
CUDA_EXPORT int cudaGetDeviceFlags(unsigned* flags) {
  if (flags == nullptr) return kept(cuda::invalid_value);
  *flags = 8;  // cudaDeviceMapHost, as always since CUDA has unified addresses
  return cuda::success;
}
CUDA_EXPORT int cudaDeviceSetLimit(int limit, size_t value) {
  return kept(limits.write(limit, value) ? cuda::success : cuda::invalid_value);
}
CUDA_EXPORT int cudaDeviceGetLimit(size_t* value, int limit) {
  return kept(value != nullptr && limits.read(limit, *value) ? cuda::success : cuda::invalid_value);
}
CUDA_EXPORT int cudaDeviceSetCacheConfig(int preference) {
  if (preference < 0 || preference > 3) return kept(cuda::invalid_value);
  cache_preference = preference;
  return cuda::success;
}
CUDA_EXPORT int cudaDeviceGetCacheConfig(int* preference) {
  if (preference == nullptr) return kept(cuda::invalid_value);
  *preference = cache_preference;
  return cuda::success;
}
CUDA_EXPORT int cudaProfilerStart() { return cuda::success; }
CUDA_EXPORT int cudaProfilerStop() { return cuda::success; }
CUDA_EXPORT int cudaDeviceReset() { return cudaDeviceSynchronize(); }

CUDA_EXPORT int cudaIpcGetMemHandle(Handle* handle, void* pointer) {
  if (handle == nullptr) return kept(cuda::invalid_value);
  return kept(runtime().show(pointer, *handle));
}
CUDA_EXPORT int cudaIpcOpenMemHandle(void** pointer, Handle handle, unsigned flags) {
  if (pointer == nullptr || flags != 1) return kept(cuda::invalid_value);  // cudaIpcMemLazyEnablePeerAccess
  return kept(runtime().open(handle, *pointer));
}
CUDA_EXPORT int cudaIpcCloseMemHandle(void* pointer) { return kept(runtime().close(pointer)); }
CUDA_EXPORT int cudaIpcGetEventHandle(void*, Event*) { return kept(cuda::not_supported); }
CUDA_EXPORT int cudaIpcOpenEventHandle(Event**, ...) { return kept(cuda::not_supported); }
CUDA_EXPORT int cudaLaunchHostFunc(Stream* stream, void (*function)(void*), void* argument) {
  return kept(streams().call(stream, function, argument));
}

CUDA_EXPORT int cudaStreamAddCallback(Stream* stream, Callback callback, void* argument, unsigned flags) {
  return kept(flags == 0 ? add_callback(stream, callback, argument) : Result::bad_value);
}
CUDA_EXPORT int cudaStreamIsCapturing(Stream* stream, int* status) {
  bool blocking = true;
  if (status == nullptr) return kept(cuda::invalid_value);
  *status = 0;
  return kept(streams().is_blocking(stream, blocking));
}

CUDA_EXPORT int cudaLaunchKernel(const void* function, Shape grid, Shape block, void** arguments, size_t shared_bytes,
                                 Stream* stream) {
  if (!streams().is_of_current_device(stream)) return kept(cuda::invalid_handle);
  return kept(launch(function, grid, block, arguments, shared_bytes, stream));
}
// Of a host's code the shared memory and registers are not known.
CUDA_EXPORT int cudaFuncGetAttributes(KernelAttributes* attributes, const void* function) {
  if (attributes == nullptr) return kept(cuda::invalid_value);
  if (!is_kernel(function)) return kept(cuda::invalid_function);
  const int capability = runtime().settings().capability;
  *attributes = {0, 0, 0, 1024, 0, capability, capability, 0, shared_bytes_most, -1};
  return cuda::success;
}
CUDA_EXPORT int cudaFuncSetCacheConfig(const void* function, int) {
  return kept(is_kernel(function) ? cuda::success : cuda::invalid_function);
}
CUDA_EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* function, int threads,
                                                                       size_t, unsigned) {
  if (blocks == nullptr || threads <= 0) return kept(cuda::invalid_value);
  if (!is_kernel(function)) return kept(cuda::invalid_function);
  *blocks = resident_blocks(threads, resident_threads, resident_blocks_most);
  return cuda::success;
}
CUDA_EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int threads,
                                                              size_t shared_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, shared_bytes, 0);
}
// What the driver calls a kernel of this process.
CUDA_EXPORT int cudaGetFuncBySymbol(void** function, const void* symbol) {
  if (function == nullptr) return kept(cuda::invalid_value);
  if (!is_kernel(symbol)) return kept(cuda::invalid_function);
  *function = const_cast<void*>(symbol);
  return cuda::success;
}
// A variable of the device's code is one of this process.
CUDA_EXPORT int cudaGetSymbolAddress(void** pointer, const void* symbol) {
  if (pointer == nullptr || symbol == nullptr) return kept(cuda::invalid_value);
  *pointer = const_cast<void*>(symbol);
  return cuda::success;
}
CUDA_EXPORT int cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset, int) {
  char* const to = static_cast<char*>(const_cast<void*>(symbol)) + offset;
  return kept(streams().copy(to, from, bytes, nullptr, Returning::when_done));
}
CUDA_EXPORT int cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset, int) {
  const char* const from = static_cast<const char*>(symbol) + offset;
  return kept(streams().copy(to, from, bytes, nullptr, Returning::when_done));
}

CUDA_EXPORT int cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset, int,
                                        Stream* stream) {
  char* const to = static_cast<char*>(const_cast<void*>(symbol)) + offset;
  return kept(streams().copy(to, from, bytes, stream, Returning::at_once));
}
CUDA_EXPORT int cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset, int,
                                          Stream* stream) {
  const char* const from = static_cast<const char*>(symbol) + offset;
  return kept(streams().copy(to, from, bytes, stream, Returning::at_once));
}

// Of a program that NVIDIA's compiler has made: it registers its code before main, which succeeds, so that a program
// that launches nothing runs. Each launch says that its kernel is none.
CUDA_EXPORT void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
CUDA_EXPORT void __cudaRegisterFatBinaryEnd(void**) {}
CUDA_EXPORT void __cudaUnregisterFatBinary(void**) {}
CUDA_EXPORT void __cudaRegisterFunction() {}
CUDA_EXPORT void __cudaRegisterVar() {}
CUDA_EXPORT void __cudaRegisterManagedVar() {}
CUDA_EXPORT unsigned __cudaPushCallConfiguration(Shape grid, Shape block, size_t shared_bytes, Stream* stream) {
  configuration = {grid, block, shared_bytes, stream};
  return 0;
}
CUDA_EXPORT int __cudaPopCallConfiguration(Shape* grid, Shape* block, size_t* shared_bytes, Stream** stream) {
  *grid = configuration.grid;
  *block = configuration.block;
  *shared_bytes = configuration.shared_bytes;
  *stream = configuration.stream;
  return cuda::success;
}

// An argument that nobody reads needs no name in C's calling convention.
#define MISSING(name) \
  CUDA_EXPORT int name() { return kept(cuda::not_supported); }
#include "gpu/cudart_missing.def"
#undef MISSING
