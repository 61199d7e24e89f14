/* The calls of HIP that dryfly's GPUs have (docs/guide/gpu.md), for programs that are compiled without AMD's own
 * headers. C11 and C++11. */
#ifndef DRYFLY_HIP_RUNTIME_H
#define DRYFLY_HIP_RUNTIME_H

#include <dryfly/vectors.h>
#include <stddef.h>

typedef enum hipError {
  hipSuccess = 0,
  hipErrorInvalidValue = 1,
  hipErrorOutOfMemory = 2,
  hipErrorInvalidConfiguration = 9,
  hipErrorInvalidDevicePointer = 17,
  hipErrorInvalidMemcpyDirection = 21,
  hipErrorInvalidDeviceFunction = 98,
  hipErrorNoDevice = 100,
  hipErrorInvalidDevice = 101,
  hipErrorInvalidHandle = 400,
  hipErrorNotReady = 600,
  hipErrorPeerAccessAlreadyEnabled = 704,
  hipErrorPeerAccessNotEnabled = 705,
  hipErrorHostMemoryAlreadyRegistered = 712,
  hipErrorHostMemoryNotRegistered = 713,
  hipErrorNotPermitted = 800,
  hipErrorNotSupported = 801,
  hipErrorUnknown = 999,
} hipError_t;
typedef enum hipMemcpyKind {
  hipMemcpyHostToHost = 0,
  hipMemcpyHostToDevice = 1,
  hipMemcpyDeviceToHost = 2,
  hipMemcpyDeviceToDevice = 3,
  hipMemcpyDefault = 4,
} hipMemcpyKind;
typedef enum hipMemoryType {
  hipMemoryTypeUnregistered = 0,
  hipMemoryTypeHost = 1,
  hipMemoryTypeDevice = 2,
  hipMemoryTypeManaged = 3,
} hipMemoryType;

#define hipStreamDefault 0u
#define hipStreamNonBlocking 1u
#define hipEventDefault 0u
#define hipEventBlockingSync 1u
#define hipEventDisableTiming 2u
#define hipHostRegisterDefault 0u
#define hipHostRegisterPortable 1u
#define hipHostRegisterMapped 2u
#define hipMemAttachGlobal 1u
#define hipMemAttachHost 2u
#define hipIpcMemLazyEnablePeerAccess 1u
#define hipHostMallocDefault 0u
#define hipHostMallocPortable 1u
#define hipHostMallocMapped 2u
#define hipStreamWaitValueGte 0u
#define hipStreamWaitValueEq 1u
#define hipStreamWaitValueAnd 2u
#define hipStreamWaitValueNor 3u

typedef struct ihipStream_t* hipStream_t;
typedef struct ihipMemPoolHandle_t* hipMemPool_t;
typedef struct ihipEvent_t* hipEvent_t;
typedef void (*hipHostFn_t)(void*);
typedef void (*hipStreamCallback_t)(hipStream_t stream, hipError_t status, void* argument);
typedef struct {
  char reserved[64];
} hipIpcMemHandle_t;
typedef enum hipMemPoolAttr {
  hipMemPoolReuseFollowEventDependencies = 1,
  hipMemPoolReuseAllowOpportunistic = 2,
  hipMemPoolReuseAllowInternalDependencies = 3,
  hipMemPoolAttrReleaseThreshold = 4,
  hipMemPoolAttrReservedMemCurrent = 5,
  hipMemPoolAttrReservedMemHigh = 6,
  hipMemPoolAttrUsedMemCurrent = 7,
  hipMemPoolAttrUsedMemHigh = 8,
} hipMemPoolAttr;
typedef enum hipMemAllocationType { hipMemAllocationTypePinned = 1 } hipMemAllocationType;
typedef enum hipMemAllocationHandleType { hipMemHandleTypeNone = 0 } hipMemAllocationHandleType;
typedef enum hipMemLocationType { hipMemLocationTypeDevice = 1 } hipMemLocationType;
typedef struct hipMemLocation {
  hipMemLocationType type;
  int id;
} hipMemLocation;
typedef struct hipMemPoolProps {
  hipMemAllocationType allocType;
  hipMemAllocationHandleType handleTypes;
  hipMemLocation location;
  void* win32SecurityAttributes;
  size_t maxSize;
  unsigned char reserved[56];
} hipMemPoolProps;
typedef struct hipPointerAttribute_t {
  hipMemoryType type;
  int device;
  void* devicePointer;
  void* hostPointer;
  int isManaged;
  unsigned allocationFlags;
} hipPointerAttribute_t;
/* Of HIP 6. What has no name here is not filled in. */
typedef struct hipDeviceProp_t {
  char name[256];
  char ids[32];
  size_t totalGlobalMem;
  char others[864];
  char gcnArchName[256];
  char more[56];
} hipDeviceProp_t;

#ifdef __cplusplus
extern "C" {
#endif
hipError_t hipGetDeviceCount(int* count);
hipError_t hipGetDevice(int* device);
hipError_t hipSetDevice(int device);
hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_t* properties, int device);
hipError_t hipDeviceGetPCIBusId(char* address, int length, int device);
hipError_t hipDeviceGetByPCIBusId(int* device, const char* address);
hipError_t hipRuntimeGetVersion(int* version);
hipError_t hipDriverGetVersion(int* version);
hipError_t hipDeviceSynchronize(void);
hipError_t hipGetLastError(void);
hipError_t hipPeekAtLastError(void);
hipError_t hipMalloc(void** pointer, size_t bytes);
hipError_t hipMallocManaged(void** pointer, size_t bytes, unsigned flags);
hipError_t hipMallocHost(void** pointer, size_t bytes);
hipError_t hipHostMalloc(void** pointer, size_t bytes, unsigned flags);
hipError_t hipMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height);
hipError_t hipFree(void* pointer);
hipError_t hipHostFree(void* pointer);
hipError_t hipHostRegister(void* start, size_t bytes, unsigned flags);
hipError_t hipHostUnregister(void* start);
hipError_t hipHostGetDevicePointer(void** to, void* pointer, unsigned flags);
hipError_t hipMemGetInfo(size_t* unused, size_t* all);
hipError_t hipPointerGetAttributes(hipPointerAttribute_t* attributes, const void* pointer);
hipError_t hipMallocAsync(void** pointer, size_t bytes, hipStream_t stream);
hipError_t hipMallocFromPoolAsync(void** pointer, size_t bytes, hipMemPool_t pool, hipStream_t stream);
hipError_t hipFreeAsync(void* pointer, hipStream_t stream);
hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t* pool, int device);
hipError_t hipDeviceGetMemPool(hipMemPool_t* pool, int device);
hipError_t hipDeviceSetMemPool(int device, hipMemPool_t pool);
hipError_t hipMemPoolCreate(hipMemPool_t* pool, const hipMemPoolProps* properties);
hipError_t hipMemPoolDestroy(hipMemPool_t pool);
hipError_t hipMemPoolTrimTo(hipMemPool_t pool, size_t keep);
hipError_t hipMemPoolGetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void* value);
hipError_t hipMemPoolSetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void* value);
hipError_t hipMemcpy(void* to, const void* from, size_t bytes, hipMemcpyKind kind);
hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes, hipMemcpyKind kind, hipStream_t stream);
hipError_t hipMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes);
hipError_t hipMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                              hipStream_t stream);
hipError_t hipMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset, hipMemcpyKind kind);
hipError_t hipMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset, hipMemcpyKind kind);
hipError_t hipGetSymbolAddress(void** pointer, const void* symbol);
hipError_t hipMemset(void* to, int value, size_t bytes);
hipError_t hipMemsetAsync(void* to, int value, size_t bytes, hipStream_t stream);
hipError_t hipStreamCreate(hipStream_t* stream);
hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned flags);
hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned flags, int priority);
hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest);
hipError_t hipStreamDestroy(hipStream_t stream);
hipError_t hipStreamQuery(hipStream_t stream);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipMemset2D(void* to, size_t pitch, int value, size_t width, size_t height);
hipError_t hipMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height, hipStream_t stream);
hipError_t hipMemPrefetchAsync(const void* pointer, size_t bytes, int device, hipStream_t stream);
hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t callback, void* argument, unsigned flags);
hipError_t hipStreamWriteValue32(hipStream_t stream, void* at, unsigned value, unsigned flags);
hipError_t hipStreamWriteValue64(hipStream_t stream, void* at, unsigned long value, unsigned flags);
hipError_t hipStreamWaitValue32(hipStream_t stream, void* at, unsigned value, unsigned flags, unsigned mask);
hipError_t hipStreamWaitValue64(hipStream_t stream, void* at, unsigned long value, unsigned flags, unsigned long mask);
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags);
hipError_t hipEventCreate(hipEvent_t* event);
hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags);
hipError_t hipEventDestroy(hipEvent_t event);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);
hipError_t hipEventQuery(hipEvent_t event);
hipError_t hipEventSynchronize(hipEvent_t event);
hipError_t hipEventElapsedTime(float* ms, hipEvent_t begin, hipEvent_t end);
hipError_t hipDeviceCanAccessPeer(int* can, int device, int peer);
hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags);
hipError_t hipDeviceDisablePeerAccess(int peer);
hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t* handle, void* pointer);
hipError_t hipIpcOpenMemHandle(void** pointer, hipIpcMemHandle_t handle, unsigned flags);
hipError_t hipIpcCloseMemHandle(void* pointer);
hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t function, void* argument);
hipError_t hipLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                           hipStream_t stream);
const char* hipGetErrorName(hipError_t error);
const char* hipGetErrorString(hipError_t error);
#ifdef __cplusplus
}
#endif

#define hipGetDeviceProperties hipGetDevicePropertiesR0600

#ifdef __cplusplus
/* Forms for pointers of any type, and with what may be left out. */
template <class Value>
inline hipError_t hipMalloc(Value** pointer, size_t bytes) {
  return hipMalloc(reinterpret_cast<void**>(pointer), bytes);
}
template <class Value>
inline hipError_t hipMallocAsync(Value** pointer, size_t bytes, hipStream_t stream) {
  return hipMallocAsync(reinterpret_cast<void**>(pointer), bytes, stream);
}
template <class Value>
inline hipError_t hipMallocManaged(Value** pointer, size_t bytes, unsigned flags = hipMemAttachGlobal) {
  return hipMallocManaged(reinterpret_cast<void**>(pointer), bytes, flags);
}
template <class Value>
inline hipError_t hipMallocHost(Value** pointer, size_t bytes) {
  return hipMallocHost(reinterpret_cast<void**>(pointer), bytes);
}
template <class Value>
inline hipError_t hipHostMalloc(Value** pointer, size_t bytes, unsigned flags = 0) {
  return hipHostMalloc(reinterpret_cast<void**>(pointer), bytes, flags);
}
template <class Value>
inline hipError_t hipHostGetDevicePointer(Value** pointer, void* of, unsigned flags) {
  return hipHostGetDevicePointer(reinterpret_cast<void**>(pointer), of, flags);
}
template <class Value>
inline hipError_t hipGetSymbolAddress(void** pointer, const Value& symbol) {
  return hipGetSymbolAddress(pointer, static_cast<const void*>(&symbol));
}
template <class Value>
inline hipError_t hipMemcpyToSymbol(const Value& symbol, const void* from, size_t bytes, size_t offset = 0,
                                    hipMemcpyKind kind = hipMemcpyHostToDevice) {
  return hipMemcpyToSymbol(static_cast<const void*>(&symbol), from, bytes, offset, kind);
}
template <class Value>
inline hipError_t hipMemcpyFromSymbol(void* to, const Value& symbol, size_t bytes, size_t offset = 0,
                                      hipMemcpyKind kind = hipMemcpyDeviceToHost) {
  return hipMemcpyFromSymbol(to, static_cast<const void*>(&symbol), bytes, offset, kind);
}
inline hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes, hipMemcpyKind kind) {
  return hipMemcpyAsync(to, from, bytes, kind, nullptr);
}
inline hipError_t hipMemsetAsync(void* to, int value, size_t bytes) {
  return hipMemsetAsync(to, value, bytes, nullptr);
}
inline hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event) {
  return hipStreamWaitEvent(stream, event, 0);
}
inline hipError_t hipEventCreate(hipEvent_t* event, unsigned flags) { return hipEventCreateWithFlags(event, flags); }
inline hipError_t hipEventRecord(hipEvent_t event) { return hipEventRecord(event, nullptr); }
inline hipError_t hipDeviceEnablePeerAccess(int peer) { return hipDeviceEnablePeerAccess(peer, 0); }
inline hipError_t hipHostRegister(void* start, size_t bytes) { return hipHostRegister(start, bytes, 0); }

#endif

#endif
