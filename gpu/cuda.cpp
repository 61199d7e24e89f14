// libcuda.so.1: the driver's calls that MPI libraries look up, over gpu/runtime.hpp. A device has one context, its
// primary one, which is always there and is current in each thread until it says otherwise. What is not simulated
// answers CUDA_ERROR_NOT_SUPPORTED; what is answered to right and wrong calls is a real driver's answer
// (programs/check/gpu_answers.txt). Left out: modules, virtual memory management, events between processes.
#include <stdint.h>
#include <stdio.h>
#include <string.h>

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
using DevicePointer = std::uint64_t;

thread_local bool without_context = false;

Runtime& runtime() { return Runtime::get(); }
Streams& streams() { return Streams::get(); }
void* pointer_of(DevicePointer address) { return reinterpret_cast<void*>(address); }

int device_code(int device) {
  return device >= 0 && device < runtime().settings().devices ? cuda::success : cuda::invalid_device;
}

// A context's name: that of its device and one more, so that none is null.
void* context_of(int device) { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(device) + 1); }

// What is started and taken is so in the current context.
template <class Doing>
int in_context(Doing doing) {
  return without_context ? cuda::invalid_context : code_of(doing());
}

enum PointerAttribute {  // CUpointer_attribute
  attribute_context = 1,
  attribute_memory_type = 2,
  attribute_device_pointer = 3,
  attribute_host_pointer = 4,
  attribute_sync_memops = 6,
  attribute_buffer_id = 7,
  attribute_is_managed = 8,
  attribute_device_ordinal = 9,
  attribute_has_ipc = 10,
  attribute_range_start = 11,
  attribute_range_bytes = 12,
  attribute_mapped = 13,
  attribute_handle_types = 14,
};

int answer(int attribute, const Place& place, DevicePointer address, void* to) {
  const bool of_host = place.kind == Kind::pinned || place.kind == Kind::registered;
  switch (attribute) {
    case attribute_context:
      *static_cast<void**>(to) = place.allocation.pool != 0 ? nullptr : context_of(place.device);
      return cuda::success;
    case attribute_memory_type:
      *static_cast<unsigned*>(to) = of_host ? 1 : 2;
      return cuda::success;
    case attribute_device_pointer:
      *static_cast<DevicePointer*>(to) = address;
      return cuda::success;
    case attribute_host_pointer:
      if (place.kind == Kind::device) return cuda::invalid_value;
      *static_cast<void**>(to) = pointer_of(address);
      return cuda::success;
    case attribute_buffer_id:
    case attribute_range_start:
      *static_cast<std::uint64_t*>(to) = place.allocation.start;
      return cuda::success;
    case attribute_range_bytes:
      *static_cast<std::uint64_t*>(to) = place.allocation.bytes;
      return cuda::success;
    case attribute_has_ipc:
      *static_cast<unsigned char*>(to) = place.kind == Kind::device && place.allocation.pool == 0 ? 1 : 0;
      return cuda::success;
    case attribute_handle_types:
      *static_cast<std::uint64_t*>(to) = 0;
      return cuda::success;
    case attribute_mapped:
      *static_cast<unsigned*>(to) = 1;
      return cuda::success;
    case attribute_sync_memops:
      *static_cast<unsigned*>(to) = place.kind == Kind::managed || place.allocation.synchronous ? 1 : 0;
      return cuda::success;
    case attribute_is_managed:
      *static_cast<unsigned*>(to) = place.kind == Kind::managed ? 1 : 0;
      return cuda::success;
    case attribute_device_ordinal:
      *static_cast<int*>(to) = place.device;
      return cuda::success;
    default:
      return cuda::invalid_value;
  }
}

}  // namespace

CUDA_EXPORT int cuInit(unsigned flags) {
  if (flags != 0) return cuda::invalid_value;
  return runtime().settings().devices == 0 ? cuda::no_device : cuda::success;
}
CUDA_EXPORT int cuDriverGetVersion(int* version) {
  if (version == nullptr) return cuda::invalid_value;
  *version = 12040;
  return cuda::success;
}
CUDA_EXPORT int cuDeviceGetCount(int* count) {
  if (count == nullptr) return cuda::invalid_value;
  *count = runtime().settings().devices;
  return cuda::success;
}
CUDA_EXPORT int cuDeviceGet(int* device, int ordinal) {
  if (device == nullptr) return cuda::invalid_value;
  *device = ordinal;
  return device_code(ordinal);
}
CUDA_EXPORT int cuDeviceGetName(char* name, int length, int device) {
  if (name == nullptr || length < 1) return cuda::invalid_value;
  snprintf(name, static_cast<size_t>(length), "simulated GPU");
  return device_code(device);
}
CUDA_EXPORT int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  if (bytes == nullptr) return cuda::invalid_value;
  *bytes = runtime().settings().memory_bytes;
  return device_code(device);
}
CUDA_EXPORT int cuDeviceGetPCIBusId(char* to, int length, int device) {
  if (to == nullptr || length <= 0) return cuda::invalid_value;
  if (const int code = device_code(device); code != cuda::success) return code;
  write_pci(runtime().settings(), device, to, static_cast<size_t>(length));
  return cuda::success;
}
CUDA_EXPORT int cuDeviceGetByPCIBusId(int* device, const char* address) {
  if (device == nullptr || address == nullptr) return cuda::invalid_value;
  const int found = device_at_pci(runtime().settings(), address);
  if (found < 0) return cuda::invalid_device;
  *device = found;
  return cuda::success;
}
CUDA_EXPORT int cuDeviceCanAccessPeer(int* can, int device, int peer) {
  if (can == nullptr) return cuda::invalid_value;
  *can = device != peer ? 1 : 0;
  return device_code(device) != cuda::success ? device_code(device) : device_code(peer);
}
CUDA_EXPORT int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (context == nullptr) return cuda::invalid_value;
  *context = context_of(device);
  return device_code(device);
}
CUDA_EXPORT int cuDevicePrimaryCtxRelease_v2(int device) { return device_code(device); }
CUDA_EXPORT int cuDevicePrimaryCtxRelease(int device) { return device_code(device); }
CUDA_EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  if (flags == nullptr || active == nullptr) return cuda::invalid_value;
  *flags = 0;
  *active = 1;
  return device_code(device);
}
CUDA_EXPORT int cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (value == nullptr) return cuda::invalid_value;
  if (const int code = device_code(device); code != cuda::success) return code;
  return cuda::attribute(runtime().settings(), device, attribute, *value) ? cuda::success : cuda::invalid_value;
}
CUDA_EXPORT int cuCtxGetCurrent(void** context) {
  if (context == nullptr) return cuda::invalid_value;
  const bool none = without_context || runtime().settings().devices == 0;
  *context = none ? nullptr : context_of(runtime().device());
  return cuda::success;
}
CUDA_EXPORT int cuCtxSetCurrent(void* context) {
  without_context = context == nullptr;
  if (context == nullptr) return cuda::success;
  const int device = static_cast<int>(reinterpret_cast<std::uintptr_t>(context) - 1);
  return device_code(device) == cuda::success ? code_of(runtime().set_device(device)) : cuda::invalid_context;
}
// A context that is made is the device's primary one, which nothing ends.
CUDA_EXPORT int cuCtxCreate_v2(void** context, unsigned, int device) {
  if (const int code = cuDevicePrimaryCtxRetain(context, device); code != cuda::success) return code;
  return cuCtxSetCurrent(*context);
}
CUDA_EXPORT int cuCtxCreate(void** context, unsigned flags, int device) {
  return cuCtxCreate_v2(context, flags, device);
}
CUDA_EXPORT int cuCtxDestroy_v2(void* context) { return context != nullptr ? cuda::success : cuda::invalid_value; }
CUDA_EXPORT int cuCtxPushCurrent_v2(void* context) { return cuCtxSetCurrent(context); }
CUDA_EXPORT int cuCtxPopCurrent_v2(void** context) {
  return context != nullptr ? cuCtxGetCurrent(context) : cuda::success;
}
CUDA_EXPORT int cuCtxGetDevice(int* device) {
  if (device == nullptr) return cuda::invalid_value;
  if (without_context || runtime().settings().devices == 0) return cuda::invalid_context;
  *device = runtime().device();
  return cuda::success;
}
CUDA_EXPORT int cuCtxSynchronize() {
  return in_context([] { return streams().synchronize_device(); });
}

CUDA_EXPORT int cuPointerGetAttribute(void* to, int attribute, DevicePointer address) {
  if (to == nullptr) return cuda::invalid_value;
  const Place place = runtime().place_of(pointer_of(address));
  return place.kind == Kind::host ? cuda::invalid_value : answer(attribute, place, address, to);
}
// Unlike the call for one attribute this one succeeds for host memory, and answers nothing then.
CUDA_EXPORT int cuPointerGetAttributes(unsigned count, const int* attributes, void** to, DevicePointer address) {
  if (count == 0 || attributes == nullptr || to == nullptr) return cuda::invalid_value;
  const Place place = runtime().place_of(pointer_of(address));
  for (unsigned i = 0; i < count; ++i) {
    if (place.kind == Kind::host) {
      const bool is_wide = attributes[i] == attribute_context || attributes[i] == attribute_device_pointer ||
                           attributes[i] == attribute_host_pointer || attributes[i] == attribute_buffer_id;
      memset(to[i], 0, is_wide ? sizeof(std::uint64_t) : sizeof(unsigned));
    } else if (const int code = answer(attributes[i], place, address, to[i]); code != cuda::success) {
      return code;
    }
  }
  return cuda::success;
}
CUDA_EXPORT int cuPointerSetAttribute(const void* value, int attribute, DevicePointer address) {
  if (value == nullptr || attribute != attribute_sync_memops) return cuda::invalid_value;
  return code_of(runtime().make_synchronous(pointer_of(address), *static_cast<const unsigned*>(value) != 0));
}
CUDA_EXPORT int cuMemGetAddressRange_v2(DevicePointer* base, size_t* bytes, DevicePointer address) {
  const Place place = runtime().place_of(pointer_of(address));
  if (place.kind == Kind::host) return cuda::not_found;
  if (base != nullptr) *base = place.allocation.start;
  if (bytes != nullptr) *bytes = place.allocation.bytes;
  return cuda::success;
}

CUDA_EXPORT int cuMemGetAddressRange(DevicePointer* base, size_t* bytes, DevicePointer address) {
  return cuMemGetAddressRange_v2(base, bytes, address);
}

CUDA_EXPORT int cuMemAlloc_v2(DevicePointer* address, size_t bytes) {
  if (address == nullptr || bytes == 0) return cuda::invalid_value;
  if (without_context) return cuda::invalid_context;
  void* pointer = nullptr;
  const int code = code_of(runtime().allocate(Kind::device, bytes, pointer));
  *address = reinterpret_cast<DevicePointer>(pointer);
  return code;
}
CUDA_EXPORT int cuMemAlloc(DevicePointer* address, size_t bytes) { return cuMemAlloc_v2(address, bytes); }
CUDA_EXPORT int cuMemAllocManaged(DevicePointer* address, size_t bytes, unsigned flags) {
  if (address == nullptr || bytes == 0 || (flags != 1 && flags != 2)) return cuda::invalid_value;
  if (without_context) return cuda::invalid_context;
  void* pointer = nullptr;
  const int code = code_of(runtime().allocate(Kind::managed, bytes, pointer));
  *address = reinterpret_cast<DevicePointer>(pointer);
  return code;
}
CUDA_EXPORT int cuMemFree_v2(DevicePointer address) { return code_of(runtime().release(pointer_of(address), false)); }
CUDA_EXPORT int cuMemFree(DevicePointer address) { return cuMemFree_v2(address); }
CUDA_EXPORT int cuMemAllocFromPoolAsync(DevicePointer* address, size_t bytes, MemoryPool* pool, Stream* stream) {
  void* pointer = nullptr;
  if (address == nullptr) return cuda::invalid_value;
  const int code = in_context([&] { return runtime().take_in_stream(pool, bytes, stream, pointer); });
  *address = reinterpret_cast<DevicePointer>(pointer);
  return code;
}
CUDA_EXPORT int cuMemAllocAsync(DevicePointer* address, size_t bytes, Stream* stream) {
  return cuMemAllocFromPoolAsync(address, bytes, nullptr, stream);
}
CUDA_EXPORT int cuMemFreeAsync(DevicePointer address, Stream* stream) {
  return in_context([&] { return runtime().give_back_in_stream(pointer_of(address), stream); });
}
CUDA_EXPORT int cuDeviceGetDefaultMemPool(MemoryPool** pool, int device) { return cuda::pool_of(pool, device, true); }
CUDA_EXPORT int cuDeviceGetMemPool(MemoryPool** pool, int device) { return cuda::pool_of(pool, device, false); }
CUDA_EXPORT int cuDeviceSetMemPool(int device, MemoryPool* pool) { return code_of(runtime().set_pool(device, pool)); }
CUDA_EXPORT int cuMemPoolCreate(MemoryPool** pool, const cuda::PoolProperties* properties) {
  return cuda::create_pool(pool, properties);
}
CUDA_EXPORT int cuMemPoolDestroy(MemoryPool* pool) { return code_of(runtime().destroy(pool)); }
CUDA_EXPORT int cuMemPoolTrimTo(MemoryPool* pool, size_t keep) { return code_of(runtime().trim(pool, keep)); }
CUDA_EXPORT int cuMemPoolGetAttribute(MemoryPool* pool, int attribute, void* value) {
  return code_of(runtime().read(pool, attribute, value));
}
CUDA_EXPORT int cuMemPoolSetAttribute(MemoryPool* pool, int attribute, void* value) {
  return code_of(runtime().write(pool, attribute, value));
}
CUDA_EXPORT int cuMemAllocHost_v2(void** pointer, size_t bytes) {
  if (pointer == nullptr) return cuda::invalid_value;
  return code_of(runtime().allocate(Kind::pinned, bytes, *pointer));
}
CUDA_EXPORT int cuMemFreeHost(void* pointer) { return code_of(runtime().release(pointer, true)); }
CUDA_EXPORT int cuMemHostRegister_v2(void* start, size_t bytes, unsigned) {
  return code_of(runtime().register_host(start, bytes));
}
CUDA_EXPORT int cuMemHostRegister(void* start, size_t bytes, unsigned flags) {
  return cuMemHostRegister_v2(start, bytes, flags);
}
CUDA_EXPORT int cuMemHostGetDevicePointer_v2(DevicePointer* to, void* pointer, unsigned flags) {
  if (to == nullptr || flags != 0) return cuda::invalid_value;
  const Kind kind = runtime().place_of(pointer).kind;
  if (kind != Kind::pinned && kind != Kind::registered) return cuda::invalid_value;
  *to = reinterpret_cast<DevicePointer>(pointer);
  return cuda::success;
}
CUDA_EXPORT int cuMemHostUnregister(void* start) { return code_of(runtime().unregister_host(start)); }
CUDA_EXPORT int cuMemGetInfo_v2(size_t* unused, size_t* all) {
  if (unused == nullptr || all == nullptr) return cuda::invalid_value;
  if (runtime().settings().devices == 0) return cuda::no_device;
  runtime().memory_info(*unused, *all);
  return cuda::success;
}

CUDA_EXPORT int cuMemcpy(DevicePointer to, DevicePointer from, size_t bytes) {
  return code_of(streams().copy(pointer_of(to), pointer_of(from), bytes, nullptr, Returning::when_safe));
}
CUDA_EXPORT int cuMemcpyAsync(DevicePointer to, DevicePointer from, size_t bytes, Stream* stream) {
  return code_of(streams().copy(pointer_of(to), pointer_of(from), bytes, stream, Returning::at_once));
}
CUDA_EXPORT int cuMemcpyHtoD_v2(DevicePointer to, const void* from, size_t bytes) {
  return code_of(streams().copy(pointer_of(to), from, bytes, nullptr, Returning::when_safe));
}
CUDA_EXPORT int cuMemcpyDtoH_v2(void* to, DevicePointer from, size_t bytes) {
  return code_of(streams().copy(to, pointer_of(from), bytes, nullptr, Returning::when_safe));
}
CUDA_EXPORT int cuMemcpyDtoD_v2(DevicePointer to, DevicePointer from, size_t bytes) {
  return cuMemcpy(to, from, bytes);
}
CUDA_EXPORT int cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, size_t bytes, Stream* stream) {
  return code_of(streams().copy(pointer_of(to), from, bytes, stream, Returning::at_once));
}
CUDA_EXPORT int cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, size_t bytes, Stream* stream) {
  return code_of(streams().copy(to, pointer_of(from), bytes, stream, Returning::at_once));
}
CUDA_EXPORT int cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t bytes, Stream* stream) {
  return cuMemcpyAsync(to, from, bytes, stream);
}
CUDA_EXPORT int cuMemsetD8_v2(DevicePointer to, unsigned char value, size_t bytes) {
  return code_of(streams().fill(pointer_of(to), value, bytes, nullptr, Returning::when_safe));
}

CUDA_EXPORT int cuMemsetD8(DevicePointer to, unsigned char value, size_t bytes) {
  return cuMemsetD8_v2(to, value, bytes);
}
CUDA_EXPORT int cuMemsetD8Async(DevicePointer to, unsigned char value, size_t bytes, Stream* stream) {
  return code_of(streams().fill(pointer_of(to), value, bytes, stream, Returning::at_once));
}

CUDA_EXPORT int cuStreamCreate(Stream** stream, unsigned flags) {
  if (stream == nullptr || flags > 1) return cuda::invalid_value;
  return code_of(streams().create(*stream, flags == 0));
}
CUDA_EXPORT int cuStreamDestroy_v2(Stream* stream) { return code_of(streams().destroy(stream)); }
CUDA_EXPORT int cuStreamDestroy(Stream* stream) { return cuStreamDestroy_v2(stream); }
CUDA_EXPORT int cuStreamQuery(Stream* stream) { return code_of(streams().query(stream)); }
CUDA_EXPORT int cuStreamSynchronize(Stream* stream) { return code_of(streams().synchronize(stream)); }
CUDA_EXPORT int cuStreamWaitEvent(Stream* stream, Event* event, unsigned) {
  return code_of(streams().wait(stream, event));
}
CUDA_EXPORT int cuEventCreate(Event** event, unsigned flags) {
  constexpr unsigned without_time = 2, all = 7;
  if (event == nullptr || flags > all) return cuda::invalid_value;
  return code_of(streams().create(*event, (flags & without_time) == 0));
}
CUDA_EXPORT int cuEventElapsedTime(float* ms, Event* begin, Event* end) {
  return ms == nullptr ? cuda::invalid_value : code_of(streams().elapsed(begin, end, *ms));
}
CUDA_EXPORT int cuEventDestroy_v2(Event* event) { return code_of(streams().destroy(event)); }
CUDA_EXPORT int cuEventDestroy(Event* event) { return cuEventDestroy_v2(event); }
CUDA_EXPORT int cuEventRecord(Event* event, Stream* stream) { return code_of(streams().record(event, stream)); }
CUDA_EXPORT int cuEventQuery(Event* event) { return code_of(streams().query(event)); }
CUDA_EXPORT int cuEventSynchronize(Event* event) { return code_of(streams().synchronize(event)); }

CUDA_EXPORT int cuLaunchHostFunc(Stream* stream, void (*function)(void*), void* argument) {
  return code_of(streams().call(stream, function, argument));
}

CUDA_EXPORT int cuIpcGetMemHandle(Handle* handle, DevicePointer address) {
  return handle == nullptr ? cuda::invalid_value : code_of(runtime().show(pointer_of(address), *handle));
}
CUDA_EXPORT int cuIpcOpenMemHandle_v2(DevicePointer* address, Handle handle, unsigned flags) {
  if (address == nullptr || flags != 1) return cuda::invalid_value;  // CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
  void* pointer = nullptr;
  const int code = code_of(runtime().open(handle, pointer));
  if (code == cuda::success) *address = reinterpret_cast<DevicePointer>(pointer);
  return code;
}
CUDA_EXPORT int cuIpcOpenMemHandle(DevicePointer* address, Handle handle, unsigned flags) {
  return cuIpcOpenMemHandle_v2(address, handle, flags);
}
CUDA_EXPORT int cuIpcCloseMemHandle(DevicePointer address) { return code_of(runtime().close(pointer_of(address))); }
CUDA_EXPORT int cuIpcGetEventHandle(void*, Event*) { return cuda::not_supported; }
CUDA_EXPORT int cuIpcOpenEventHandle(Event**, ...) { return cuda::not_supported; }
// `function`: as cudaGetFuncBySymbol has it, for there are no modules.
CUDA_EXPORT int cuLaunchKernel(const void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                               Stream* stream, void** arguments, void** packed) {
  if (packed != nullptr) return cuda::not_supported;
  const Shape grid{grid_x, grid_y, grid_z}, block{block_x, block_y, block_z};
  return in_context([&] {
    const Result result = launch(function, grid, block, arguments, shared_bytes, stream);
    if (result == Result::no_kernel) return Result::bad_handle;
    return result == Result::bad_shape ? Result::bad_value : result;
  });
}
CUDA_EXPORT int cuModuleGetGlobal_v2(DevicePointer*, size_t*, void*, const char*) { return cuda::not_found; }
CUDA_EXPORT int cuModuleGetGlobal(DevicePointer* address, size_t* bytes, void* module, const char* name) {
  return cuModuleGetGlobal_v2(address, bytes, module, name);
}

CUDA_EXPORT int cuGetErrorName(int code, const char** name) {
  if (name == nullptr) return cuda::invalid_value;
  *name = cuda::driver_name(code);
  return *name != nullptr ? cuda::success : cuda::invalid_value;
}
CUDA_EXPORT int cuGetErrorString(int code, const char** text) {
  if (text == nullptr) return cuda::invalid_value;
  *text = cuda::driver_name(code) != nullptr ? cuda::text_of(code) : nullptr;
  return *text != nullptr ? cuda::success : cuda::invalid_value;
}

// An argument that nobody reads needs no name in C's calling convention.
#define MISSING(name) \
  CUDA_EXPORT int name() { return cuda::not_supported; }
#include "gpu/cuda_missing.def"
#undef MISSING
