// libamdhip64.so.5, .6 and .7: HIP's calls that MPI libraries and their users make, over gpu/runtime.hpp. What is not
// simulated answers hipErrorNotSupported. Left out: graphs, textures, arrays, events between processes.
//
// Compiled once for each release (DRYFLY_HIP_RELEASE), which differ in what these calls say: the types of memory that
// hipPointerGetAttributes names have other numbers in HIP 5; hipGetDeviceProperties fills HIP 5's structure in every
// release, and from HIP 6 on headers call hipGetDevicePropertiesR0600 with another; the last error is the last call's
// result before HIP 7, as in CUDA from then on. Layouts and numbers are those of AMD's public headers.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/common_calls.hpp"
#include "gpu/cuda_pools.hpp"
#include "gpu/hip_codes.hpp"
#include "gpu/kernels.hpp"
#include "gpu/pci.hpp"
#include "gpu/runtime.hpp"
#include "gpu/streams.hpp"

#define HIP_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace dryfly::gpu;
using hip::code_of;

constexpr int release = DRYFLY_HIP_RELEASE;
constexpr int version = release * 10'000'000 + 200'000;  // minor 2

thread_local int last_result = 0;
thread_local int last_error = 0;

int kept(int code) {
  last_result = code;
  if (release < 7 || (code != hip::success && code != hip::not_ready)) last_error = code;
  return code;
}
int kept(Result result) { return kept(code_of(result)); }

Runtime& runtime() { return Runtime::get(); }
Streams& streams() { return Streams::get(); }
const Settings& settings() { return runtime().settings(); }

int device_code(int device) {
  if (settings().devices == 0) return hip::no_device;
  return device >= 0 && device < settings().devices ? hip::success : hip::invalid_device;
}

int pci_bus(int device) { return dryfly::gpu::pci_bus(settings(), device); }

// A die of an MI250X, which is what every machine with HIP here has.
constexpr char device_name[] = "simulated GPU";
constexpr char architecture[] = "gfx90a:sramecc+:xnack-";
constexpr int compute_major = 9, compute_minor = 0;
constexpr int compute_units = 110;
constexpr int wave_size = 64;
constexpr int threads_per_block = 1024;

// Where hipDeviceProp_t has what is filled in, and how long it is. The rest is zero.
struct PropertiesLayout {
  std::size_t bytes, memory, wave, threads, major, minor, units, domain, bus, arch, maps_host, managed;
};
constexpr PropertiesLayout before_6 = {792, 256, 276, 280, 328, 332, 336, 364, 368, 396, 388, 772};
constexpr PropertiesLayout from_6 = {1472, 288, 308, 320, 360, 364, 388, 592, 584, 1160, 400, 652};

int fill_properties(void* to, int device, const PropertiesLayout& layout) {
  if (to == nullptr) return hip::invalid_value;
  if (const int code = device_code(device); code != hip::success) return code;
  auto* const bytes = static_cast<char*>(to);
  const auto put = [bytes](std::size_t at, const auto& value) { memcpy(bytes + at, &value, sizeof value); };
  memset(bytes, 0, layout.bytes);
  put(0, device_name);
  put(layout.memory, settings().memory_bytes);
  put(layout.wave, wave_size);
  put(layout.threads, threads_per_block);
  put(layout.major, compute_major);
  put(layout.minor, compute_minor);
  put(layout.units, compute_units);
  put(layout.domain, pci_domain);
  put(layout.bus, pci_bus(device));
  put(layout.arch, architecture);
  put(layout.maps_host, 1);
  put(layout.managed, 1);
  return hip::success;
}

struct PointerAttributes {
  int type;
  int device;
  void* device_pointer;
  void* host_pointer;
  int is_managed;
  unsigned flags;
};

enum Type : int {
  of_host = release < 6 ? 0 : 1,
  of_device = release < 6 ? 1 : 2,
  of_managed = release < 6 ? 4 : 3,
};

int attributes_of(const void* pointer, PointerAttributes& attributes) {
  attributes = {};
  if (settings().devices == 0) return hip::no_device;
  const Place place = runtime().place_of(pointer);
  if (place.kind == Kind::host) return hip::invalid_value;  // HIP knows no type for what it has not registered
  void* const same = const_cast<void*>(pointer);
  attributes.type = place.kind == Kind::device ? of_device : place.kind == Kind::managed ? of_managed : of_host;
  attributes.device = place.device;
  attributes.device_pointer = same;
  attributes.host_pointer = place.kind == Kind::device ? nullptr : same;
  attributes.is_managed = place.kind == Kind::managed ? 1 : 0;
  return hip::success;
}

constexpr int last_kind = 4;             // hipMemcpyDefault
constexpr int without_units = 1024;      // hipMemcpyDeviceToDeviceNoCU
constexpr unsigned signal_memory = 0x2;  // hipMallocSignalMemory

int wait_for(Stream* stream, void* at, std::uint64_t value, unsigned how, std::uint64_t mask, std::uint32_t bytes) {
  constexpr Comparison comparisons[] = {Comparison::at_least, Comparison::equal, Comparison::common_bit,
                                        Comparison::missing_bit};
  if (at == nullptr || how >= sizeof comparisons / sizeof *comparisons) return hip::invalid_value;
  return code_of(streams().wait(stream, {.address = reinterpret_cast<std::uint64_t>(at),
                                         .value = value,
                                         .mask = mask,
                                         .bytes = bytes,
                                         .comparison = comparisons[how]}));
}

int copy(void* to, const void* from, std::size_t bytes, int kind, Stream* stream, Returning returning) {
  if ((kind < 0 || kind > last_kind) && kind != without_units) return hip::invalid_memcpy_direction;
  return code_of(streams().copy(to, from, bytes, stream, returning));
}
int copy_rows(void* to, const void* from, const Rows& rows, int kind, Stream* stream, Returning returning) {
  if ((kind < 0 || kind > last_kind) && kind != without_units) return hip::invalid_memcpy_direction;
  if (rows.width > rows.to_pitch || rows.width > rows.from_pitch) return hip::invalid_pitch;
  return code_of(streams().copy(to, from, rows, stream, returning));
}
int copy(void* to, const void* from, std::size_t bytes) {
  return copy(to, from, bytes, last_kind, nullptr, Returning::when_safe);
}
int copy_later(void* to, const void* from, std::size_t bytes, Stream* stream) {
  return copy(to, from, bytes, last_kind, stream, Returning::at_once);
}

// A pattern of four bytes that are not one byte four times is not simulated.
int fill_words(void* to, std::uint32_t value, std::size_t count, Stream* stream) {
  const std::uint32_t byte = value & 0xff;
  if (value != byte * 0x01010101u) return hip::not_supported;
  return code_of(streams().fill(to, static_cast<int>(byte), count * sizeof value, stream, Returning::at_once));
}

int allocate(Kind kind, void** pointer, std::size_t bytes) {
  return pointer == nullptr ? hip::invalid_value : code_of(runtime().allocate(kind, bytes, *pointer));
}

// What is wrong with `peer` as another device than the thread's.
int peer_code(int peer) {
  if (device_code(peer) != hip::success || peer == runtime().device()) return hip::invalid_device;
  return hip::success;
}
Limits limits;
constexpr int on_the_host = -1;  // hipCpuDeviceId

int managed_code(const void* pointer, int device) {
  if (!is_managed(pointer)) return hip::invalid_value;
  return device == on_the_host ? hip::success : device_code(device);
}

std::uint16_t peers_of[devices_max];  // a bit for each device whose memory may be accessed

}  // namespace

HIP_EXPORT int hipInit(unsigned flags) {
  if (flags != 0) return kept(hip::invalid_value);
  return kept(settings().devices == 0 ? hip::no_device : hip::success);
}
HIP_EXPORT int hipRuntimeGetVersion(int* to) {
  if (to == nullptr) return kept(hip::invalid_value);
  *to = version;
  return kept(hip::success);
}
HIP_EXPORT int hipDriverGetVersion(int* to) { return hipRuntimeGetVersion(to); }
HIP_EXPORT int hipGetLastError() {
  const int code = last_error;
  last_error = hip::success;
  return code;
}
HIP_EXPORT int hipPeekAtLastError() { return last_error; }
HIP_EXPORT int hipExtGetLastError() {
  const int code = last_result;
  last_result = hip::success;
  return code;
}
HIP_EXPORT const char* hipGetErrorName(int code) { return hip::words_of(code).name; }
HIP_EXPORT const char* hipGetErrorString(int code) { return hip::words_of(code).text; }
HIP_EXPORT int hipDrvGetErrorName(int code, const char** to) {
  if (to == nullptr) return hip::invalid_value;
  *to = hip::words_of(code).name;
  return hip::success;
}
HIP_EXPORT int hipDrvGetErrorString(int code, const char** to) {
  if (to == nullptr) return hip::invalid_value;
  *to = hip::words_of(code).text;
  return hip::success;
}

HIP_EXPORT int hipGetDeviceCount(int* count) {
  if (count == nullptr) return kept(hip::invalid_value);
  *count = settings().devices;
  return kept(*count == 0 ? hip::no_device : hip::success);
}
HIP_EXPORT int hipGetDevice(int* device) {
  if (device == nullptr) return kept(hip::invalid_value);
  if (settings().devices == 0) return kept(hip::no_device);
  *device = runtime().device();
  return kept(hip::success);
}
HIP_EXPORT int hipSetDevice(int device) {
  if (const int code = device_code(device); code != hip::success) return kept(code);
  return kept(runtime().set_device(device));
}
HIP_EXPORT int hipDeviceGet(int* device, int ordinal) {
  if (device == nullptr) return kept(hip::invalid_value);
  *device = ordinal;
  return kept(device_code(ordinal));
}
HIP_EXPORT int hipGetDeviceProperties(void* to, int device) { return kept(fill_properties(to, device, before_6)); }
#if DRYFLY_HIP_RELEASE >= 6
HIP_EXPORT int hipGetDevicePropertiesR0000(void* to, int device) { return kept(fill_properties(to, device, before_6)); }
HIP_EXPORT int hipGetDevicePropertiesR0600(void* to, int device) { return kept(fill_properties(to, device, from_6)); }
#endif
HIP_EXPORT int hipDeviceGetName(char* to, int length, int device) {
  if (to == nullptr || length <= 0) return kept(hip::invalid_value);
  if (const int code = device_code(device); code != hip::success) return kept(code);
  snprintf(to, static_cast<std::size_t>(length), "%s", device_name);
  return kept(hip::success);
}
HIP_EXPORT int hipDeviceTotalMem(std::size_t* bytes, int device) {
  if (bytes == nullptr) return kept(hip::invalid_value);
  if (const int code = device_code(device); code != hip::success) return kept(code);
  *bytes = settings().memory_bytes;
  return kept(hip::success);
}
HIP_EXPORT int hipDeviceComputeCapability(int* major, int* minor, int device) {
  if (major == nullptr || minor == nullptr) return kept(hip::invalid_value);
  *major = compute_major;
  *minor = compute_minor;
  return kept(device_code(device));
}
HIP_EXPORT int hipDeviceGetPCIBusId(char* to, int length, int device) {
  if (to == nullptr || length <= 0) return kept(hip::invalid_value);
  if (const int code = device_code(device); code != hip::success) return kept(code);
  write_pci(settings(), device, to, static_cast<std::size_t>(length));
  return kept(hip::success);
}
HIP_EXPORT int hipDeviceGetByPCIBusId(int* device, const char* address) {
  if (device == nullptr || address == nullptr) return kept(hip::invalid_value);
  const int found = device_at_pci(settings(), address);
  if (found < 0) return kept(hip::invalid_value);
  *device = found;
  return kept(hip::success);
}
HIP_EXPORT int hipDeviceGetAttribute(int* to, int attribute, int device) {
  if (to == nullptr) return kept(hip::invalid_value);
  if (const int code = device_code(device); code != hip::success) return kept(code);
  switch (attribute) {
    case 3:      // hipDeviceAttributeCanMapHostMemory
    case 24:     // ManagedMemory
    case 85:     // UnifiedAddressing
    case 88:     // MemoryPoolsSupported
    case 90:     // HostRegisterSupported
    case 10013:  // CanUseStreamWaitValue
      *to = 1;
      break;
    case 16:  // Integrated
    case 89:  // VirtualMemoryManagementSupported
      *to = 0;
      break;
    case 23:  // ComputeCapabilityMajor
      *to = compute_major;
      break;
    case 61:  // ComputeCapabilityMinor
      *to = compute_minor;
      break;
    case 56:  // MaxThreadsPerBlock
      *to = threads_per_block;
      break;
    case 63:  // MultiprocessorCount
      *to = compute_units;
      break;
    case 67:  // PciBusId
      *to = pci_bus(device);
      break;
    case 68:  // PciDeviceId
      *to = 0;
      break;
    case 69:  // PciDomainID
      *to = pci_domain;
      break;
    case 87:  // WarpSize
      *to = wave_size;
      break;
    default:
      return kept(hip::not_supported);
  }
  return kept(hip::success);
}
HIP_EXPORT int hipDeviceSynchronize() { return kept(streams().synchronize_device()); }
HIP_EXPORT int hipDeviceSetLimit(int limit, std::size_t value) {
  return kept(limits.write(limit, value) ? hip::success : hip::invalid_value);
}
HIP_EXPORT int hipDeviceGetLimit(std::size_t* value, int limit) {
  return kept(value != nullptr && limits.read(limit, *value) ? hip::success : hip::invalid_value);
}
HIP_EXPORT int hipDeviceSetCacheConfig(int) { return kept(hip::success); }
HIP_EXPORT int hipDeviceReset() { return hipDeviceSynchronize(); }

HIP_EXPORT int hipMalloc(void** pointer, std::size_t bytes) { return kept(allocate(Kind::device, pointer, bytes)); }
HIP_EXPORT int hipExtMallocWithFlags(void** pointer, std::size_t bytes, unsigned flags) {
  if (flags == signal_memory && bytes != sizeof(std::uint64_t)) return kept(hip::invalid_value);
  return kept(allocate(Kind::device, pointer, bytes));
}
HIP_EXPORT int hipMallocManaged(void** pointer, std::size_t bytes, unsigned) {
  return kept(bytes == 0 ? hip::invalid_value : allocate(Kind::managed, pointer, bytes));
}
HIP_EXPORT int hipHostMalloc(void** pointer, std::size_t bytes, unsigned) {
  return kept(allocate(Kind::pinned, pointer, bytes));
}
HIP_EXPORT int hipHostAlloc(void** pointer, std::size_t bytes, unsigned) { return hipHostMalloc(pointer, bytes, 0); }
HIP_EXPORT int hipExtHostAlloc(void** pointer, std::size_t bytes, unsigned) { return hipHostMalloc(pointer, bytes, 0); }
HIP_EXPORT int hipMallocHost(void** pointer, std::size_t bytes) { return hipHostMalloc(pointer, bytes, 0); }
HIP_EXPORT int hipMallocPitch(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height) {
  return kept(allocate_rows(pointer, pitch, width, height));
}
HIP_EXPORT int hipMemset2D(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height) {
  return kept(fill_rows(to, pitch, value, width, height, nullptr, Returning::when_safe));
}
HIP_EXPORT int hipMemset2DAsync(void* to, std::size_t pitch, int value, std::size_t width, std::size_t height,
                                Stream* stream) {
  return kept(fill_rows(to, pitch, value, width, height, stream, Returning::at_once));
}
HIP_EXPORT int hipMemPrefetchAsync(const void* pointer, std::size_t, int device, Stream* stream) {
  bool blocking = true;
  if (const int code = managed_code(pointer, device); code != hip::success) return kept(code);
  return kept(streams().is_blocking(stream, blocking));
}
HIP_EXPORT int hipMemAdvise(const void* pointer, std::size_t, int, int device) {
  return kept(managed_code(pointer, device));
}
// hipMemPoolProps and the numbers of its fields are as CUDA's, and so are the codes that pools answer.
HIP_EXPORT int hipMallocFromPoolAsync(void** pointer, size_t bytes, MemoryPool* pool, Stream* stream) {
  if (pointer == nullptr || pool == nullptr) return kept(hip::invalid_value);
  return kept(runtime().take_in_stream(pool, bytes, stream, *pointer));
}
HIP_EXPORT int hipMallocAsync(void** pointer, size_t bytes, Stream* stream) {
  if (pointer == nullptr) return kept(hip::invalid_value);
  return kept(runtime().take_in_stream(nullptr, bytes, stream, *pointer));
}
HIP_EXPORT int hipFreeAsync(void* pointer, Stream* stream) {
  return kept(runtime().give_back_in_stream(pointer, stream));
}
HIP_EXPORT int hipDeviceGetDefaultMemPool(MemoryPool** pool, int device) {
  return kept(cuda::pool_of(pool, device, true));
}
HIP_EXPORT int hipDeviceGetMemPool(MemoryPool** pool, int device) { return kept(cuda::pool_of(pool, device, false)); }
HIP_EXPORT int hipDeviceSetMemPool(int device, MemoryPool* pool) { return kept(runtime().set_pool(device, pool)); }
HIP_EXPORT int hipMemPoolCreate(MemoryPool** pool, const cuda::PoolProperties* properties) {
  return kept(cuda::create_pool(pool, properties));
}
HIP_EXPORT int hipMemPoolDestroy(MemoryPool* pool) { return kept(runtime().destroy(pool)); }
HIP_EXPORT int hipMemPoolTrimTo(MemoryPool* pool, size_t keep) { return kept(runtime().trim(pool, keep)); }
HIP_EXPORT int hipMemPoolGetAttribute(MemoryPool* pool, int attribute, void* value) {
  return kept(runtime().read(pool, attribute, value));
}
HIP_EXPORT int hipMemPoolSetAttribute(MemoryPool* pool, int attribute, void* value) {
  return kept(runtime().write(pool, attribute, value));
}

HIP_EXPORT int hipFree(void* pointer) {
  const Result result = runtime().release(pointer, false);
  return kept(result == Result::bad_value ? hip::invalid_device_pointer : code_of(result));
}
HIP_EXPORT int hipHostFree(void* pointer) { return kept(runtime().release(pointer, true)); }
HIP_EXPORT int hipFreeHost(void* pointer) { return hipHostFree(pointer); }
HIP_EXPORT int hipHostRegister(void* start, std::size_t bytes, unsigned) {
  return kept(runtime().register_host(start, bytes));
}
HIP_EXPORT int hipHostUnregister(void* start) { return kept(runtime().unregister_host(start)); }
HIP_EXPORT int hipHostGetDevicePointer(void** to, void* pointer, unsigned flags) {
  if (to == nullptr || pointer == nullptr || flags != 0) return kept(hip::invalid_value);
  if (settings().devices == 0) return kept(hip::no_device);
  const Kind kind = runtime().place_of(pointer).kind;
  if (kind == Kind::host || kind == Kind::device) return kept(hip::invalid_value);
  *to = pointer;
  return kept(hip::success);
}
HIP_EXPORT int hipMemGetInfo(std::size_t* unused, std::size_t* all) {
  if (unused == nullptr || all == nullptr) return kept(hip::invalid_value);
  if (settings().devices == 0) return kept(hip::no_device);
  runtime().memory_info(*unused, *all);
  return kept(hip::success);
}
HIP_EXPORT int hipMemGetAddressRange(void** base, std::size_t* bytes, void* pointer) {
  if (settings().devices == 0) return kept(hip::no_device);
  const Place place = runtime().place_of(pointer);
  if (place.kind == Kind::host) return kept(hip::not_found);
  if (base != nullptr) *base = reinterpret_cast<void*>(place.allocation.start);
  if (bytes != nullptr) *bytes = place.allocation.bytes;
  return kept(hip::success);
}
HIP_EXPORT int hipPointerGetAttributes(PointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr || pointer == nullptr) return kept(release < 7 ? hip::invalid_value : hip::success);
  return kept(attributes_of(pointer, *attributes));
}
HIP_EXPORT int hipPointerGetAttribute(void* to, int attribute, void* pointer) {
  PointerAttributes found;
  if (to == nullptr || pointer == nullptr) return kept(hip::invalid_value);
  if (const int code = attributes_of(pointer, found); code != hip::success) return kept(code);
  const Allocation allocation = runtime().place_of(pointer).allocation;
  switch (attribute) {
    case 2:  // HIP_POINTER_ATTRIBUTE_MEMORY_TYPE
      memcpy(to, &found.type, sizeof found.type);
      break;
    case 3:  // _DEVICE_POINTER
      memcpy(to, &found.device_pointer, sizeof found.device_pointer);
      break;
    case 4:  // _HOST_POINTER
      if (found.host_pointer == nullptr) return kept(hip::invalid_value);
      memcpy(to, &found.host_pointer, sizeof found.host_pointer);
      break;
    case 7:   // _BUFFER_ID
    case 11:  // _RANGE_START_ADDR
      memcpy(to, &allocation.start, sizeof allocation.start);
      break;
    case 8:  // _IS_MANAGED
      *static_cast<bool*>(to) = found.is_managed != 0;
      break;
    case 9:  // _DEVICE_ORDINAL
      memcpy(to, &found.device, sizeof found.device);
      break;
    case 12:  // _RANGE_SIZE
      memcpy(to, &allocation.bytes, sizeof allocation.bytes);
      break;
    case 13:  // _MAPPED
      *static_cast<bool*>(to) = true;
      break;
    default:
      return kept(hip::not_supported);
  }
  return kept(hip::success);
}

HIP_EXPORT int hipMemcpy(void* to, const void* from, std::size_t bytes, int kind) {
  return kept(copy(to, from, bytes, kind, nullptr, Returning::when_safe));
}
HIP_EXPORT int hipMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, Stream* stream) {
  return kept(copy(to, from, bytes, kind, stream, Returning::at_once));
}
HIP_EXPORT int hipMemcpyWithStream(void* to, const void* from, std::size_t bytes, int kind, Stream* stream) {
  return kept(copy(to, from, bytes, kind, stream, Returning::when_safe));
}
HIP_EXPORT int hipMemcpyPeer(void* to, int, const void* from, int, std::size_t bytes) {
  return kept(copy(to, from, bytes));
}
HIP_EXPORT int hipMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes, Stream* stream) {
  return kept(copy_later(to, from, bytes, stream));
}
HIP_EXPORT int hipMemcpyHtoD(void* to, const void* from, std::size_t bytes) { return kept(copy(to, from, bytes)); }
HIP_EXPORT int hipMemcpyDtoH(void* to, void* from, std::size_t bytes) { return kept(copy(to, from, bytes)); }
HIP_EXPORT int hipMemcpyDtoD(void* to, void* from, std::size_t bytes) { return kept(copy(to, from, bytes)); }
HIP_EXPORT int hipMemcpyHtoDAsync(void* to, const void* from, std::size_t bytes, Stream* stream) {
  return kept(copy_later(to, from, bytes, stream));
}
HIP_EXPORT int hipMemcpyDtoHAsync(void* to, void* from, std::size_t bytes, Stream* stream) {
  return kept(copy_later(to, from, bytes, stream));
}
HIP_EXPORT int hipMemcpyDtoDAsync(void* to, void* from, std::size_t bytes, Stream* stream) {
  return kept(copy_later(to, from, bytes, stream));
}
HIP_EXPORT int hipMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch, std::size_t width,
                           std::size_t height, int kind) {
  return kept(copy_rows(to, from, Rows{width, height, to_pitch, from_pitch}, kind, nullptr, Returning::when_safe));
}
HIP_EXPORT int hipMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                std::size_t width, std::size_t height, int kind, Stream* stream) {
  return kept(copy_rows(to, from, Rows{width, height, to_pitch, from_pitch}, kind, stream, Returning::at_once));
}
HIP_EXPORT int hipMemset(void* to, int value, std::size_t bytes) {
  return kept(streams().fill(to, value, bytes, nullptr, Returning::when_safe));
}
HIP_EXPORT int hipMemsetAsync(void* to, int value, std::size_t bytes, Stream* stream) {
  return kept(streams().fill(to, value, bytes, stream, Returning::at_once));
}
HIP_EXPORT int hipMemsetD8(void* to, unsigned char value, std::size_t bytes) { return hipMemset(to, value, bytes); }
HIP_EXPORT int hipMemsetD8Async(void* to, unsigned char value, std::size_t bytes, Stream* stream) {
  return hipMemsetAsync(to, value, bytes, stream);
}
HIP_EXPORT int hipMemsetD32(void* to, int value, std::size_t count) {
  return kept(fill_words(to, static_cast<std::uint32_t>(value), count, nullptr));
}
HIP_EXPORT int hipMemsetD32Async(void* to, int value, std::size_t count, Stream* stream) {
  return kept(fill_words(to, static_cast<std::uint32_t>(value), count, stream));
}

HIP_EXPORT int hipStreamCreateWithFlags(Stream** stream, unsigned flags) {
  if (stream == nullptr || flags > 1) return kept(hip::invalid_value);
  return kept(streams().create(*stream, flags == 0));
}
HIP_EXPORT int hipStreamCreate(Stream** stream) { return hipStreamCreateWithFlags(stream, 0); }
HIP_EXPORT int hipStreamCreateWithPriority(Stream** stream, unsigned flags, int) {
  return hipStreamCreateWithFlags(stream, flags);
}
HIP_EXPORT int hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 1;
  if (greatest != nullptr) *greatest = -1;
  return kept(settings().devices == 0 ? hip::no_device : hip::success);
}
HIP_EXPORT int hipStreamDestroy(Stream* stream) { return kept(streams().destroy(stream)); }
HIP_EXPORT int hipStreamQuery(Stream* stream) { return kept(streams().query(stream)); }
HIP_EXPORT int hipStreamSynchronize(Stream* stream) { return kept(streams().synchronize(stream)); }
HIP_EXPORT int hipStreamWaitEvent(Stream* stream, Event* event, unsigned) {
  return kept(streams().wait(stream, event));
}

HIP_EXPORT int hipStreamWaitValue32(Stream* stream, void* at, std::uint32_t value, unsigned how, std::uint32_t mask) {
  return kept(wait_for(stream, at, value, how, mask, sizeof value));
}
HIP_EXPORT int hipStreamWaitValue64(Stream* stream, void* at, std::uint64_t value, unsigned how, std::uint64_t mask) {
  return kept(wait_for(stream, at, value, how, mask, sizeof value));
}
HIP_EXPORT int hipStreamWriteValue32(Stream* stream, void* at, std::uint32_t value, unsigned) {
  return kept(at == nullptr ? Result::bad_value : streams().write(stream, at, value, sizeof value));
}
HIP_EXPORT int hipStreamWriteValue64(Stream* stream, void* at, std::uint64_t value, unsigned) {
  return kept(at == nullptr ? Result::bad_value : streams().write(stream, at, value, sizeof value));
}

HIP_EXPORT int hipEventCreateWithFlags(Event** event, unsigned flags) {
  constexpr unsigned without_time = 0x2;
  if (event == nullptr) return kept(hip::invalid_value);
  return kept(streams().create(*event, (flags & without_time) == 0));
}
HIP_EXPORT int hipEventCreate(Event** event) { return hipEventCreateWithFlags(event, 0); }
HIP_EXPORT int hipEventDestroy(Event* event) { return kept(streams().destroy(event)); }
HIP_EXPORT int hipEventRecord(Event* event, Stream* stream) { return kept(streams().record(event, stream)); }
HIP_EXPORT int hipEventQuery(Event* event) { return kept(streams().query(event)); }
HIP_EXPORT int hipEventSynchronize(Event* event) { return kept(streams().synchronize(event)); }
HIP_EXPORT int hipEventElapsedTime(float* ms, Event* begin, Event* end) {
  if (ms == nullptr) return kept(hip::invalid_value);
  return kept(streams().elapsed(begin, end, *ms));
}

HIP_EXPORT int hipDeviceCanAccessPeer(int* can, int device, int peer) {
  if (can == nullptr) return kept(hip::invalid_value);
  if (device_code(device) != hip::success || device_code(peer) != hip::success) return kept(hip::invalid_device);
  *can = device != peer ? 1 : 0;
  return kept(hip::success);
}
// Copies between devices go over their links with and without it.
HIP_EXPORT int hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  if (flags != 0) return kept(hip::invalid_value);
  if (const int code = peer_code(peer); code != hip::success) return kept(code);
  const auto bit = static_cast<std::uint16_t>(1u << peer);
  const bool before = (__atomic_fetch_or(&peers_of[runtime().device()], bit, __ATOMIC_RELAXED) & bit) != 0;
  return kept(before ? hip::peer_access_already_enabled : hip::success);
}
HIP_EXPORT int hipDeviceDisablePeerAccess(int peer) {
  if (const int code = peer_code(peer); code != hip::success) return kept(code);
  const auto bit = static_cast<std::uint16_t>(1u << peer);
  const auto rest = static_cast<std::uint16_t>(~bit);
  const bool before = (__atomic_fetch_and(&peers_of[runtime().device()], rest, __ATOMIC_RELAXED) & bit) != 0;
  return kept(before ? hip::success : hip::peer_access_not_enabled);
}

HIP_EXPORT int hipIpcGetMemHandle(Handle* handle, void* pointer) {
  return kept(handle == nullptr ? hip::invalid_value : code_of(runtime().show(pointer, *handle)));
}
HIP_EXPORT int hipIpcOpenMemHandle(void** pointer, Handle handle, unsigned) {
  return kept(pointer == nullptr ? hip::invalid_value : code_of(runtime().open(handle, *pointer)));
}
HIP_EXPORT int hipIpcCloseMemHandle(void* pointer) { return kept(runtime().close(pointer)); }
HIP_EXPORT int hipLaunchHostFunc(Stream* stream, void (*function)(void*), void* argument) {
  return kept(streams().call(stream, function, argument));
}

HIP_EXPORT int hipStreamAddCallback(Stream* stream, Callback callback, void* argument, unsigned flags) {
  return kept(flags == 0 ? add_callback(stream, callback, argument) : Result::bad_value);
}
HIP_EXPORT int hipStreamIsCapturing(Stream* stream, int* status) {
  bool blocking = true;
  if (status == nullptr) return kept(hip::invalid_value);
  *status = 0;
  return kept(streams().is_blocking(stream, blocking));
}

// Kernels. A program of AMD's compiler registers its code before main and gives it back after: that succeeds, so that a
// program which launches nothing runs, and each launch says that its kernel is none.
HIP_EXPORT int hipLaunchKernel(const void* function, Shape grid, Shape block, void** arguments, size_t shared_bytes,
                               Stream* stream) {
  return kept(launch(function, grid, block, arguments, shared_bytes, stream));
}

// Between the two calls that AMD's compiler makes of one launch.
struct Configuration {
  Shape grid;
  Shape block;
  size_t shared_bytes;
  Stream* stream;
};
static thread_local Configuration configuration;
HIP_EXPORT int __hipPushCallConfiguration(Shape grid, Shape block, size_t shared_bytes, Stream* stream) {
  configuration = {grid, block, shared_bytes, stream};
  return kept(hip::success);
}
HIP_EXPORT int __hipPopCallConfiguration(Shape* grid, Shape* block, size_t* shared_bytes, Stream** stream) {
  *grid = configuration.grid;
  *block = configuration.block;
  *shared_bytes = configuration.shared_bytes;
  *stream = configuration.stream;
  return kept(hip::success);
}
// A variable of the device's code is one of this process.
HIP_EXPORT int hipGetSymbolAddress(void** pointer, const void* symbol) {
  if (pointer == nullptr || symbol == nullptr) return kept(hip::invalid_value);
  *pointer = const_cast<void*>(symbol);
  return kept(hip::success);
}
HIP_EXPORT int hipMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset, int) {
  char* const to = static_cast<char*>(const_cast<void*>(symbol)) + offset;
  return kept(streams().copy(to, from, bytes, nullptr, Returning::when_done));
}
HIP_EXPORT int hipMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset, int,
                                      Stream* stream) {
  char* const to = static_cast<char*>(const_cast<void*>(symbol)) + offset;
  return kept(streams().copy(to, from, bytes, stream, Returning::at_once));
}
HIP_EXPORT int hipMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset, int,
                                        Stream* stream) {
  const char* const from = static_cast<const char*>(symbol) + offset;
  return kept(streams().copy(to, from, bytes, stream, Returning::at_once));
}
HIP_EXPORT int hipMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset, int) {
  const char* const from = static_cast<const char*>(symbol) + offset;
  return kept(streams().copy(to, from, bytes, nullptr, Returning::when_done));
}
HIP_EXPORT void** __hipRegisterFatBinary(const void*) {
  static void* handle = nullptr;
  return &handle;
}
HIP_EXPORT void __hipUnregisterFatBinary(void**) {}
HIP_EXPORT void __hipRegisterFunction() {}
HIP_EXPORT void __hipRegisterVar() {}
HIP_EXPORT void __hipRegisterManagedVar() {}

// An argument that nobody reads needs no name in C's calling convention.
#define MISSING(name) \
  HIP_EXPORT int name() { return kept(hip::not_supported); }
#include "gpu/hip_missing.def"
#undef MISSING
