// What the checks use of Level Zero, found as a program finds it that loads it itself. Declarations are our own, from
// the public specification.
#pragma once

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  ze_not_ready = 1,
  ze_out_of_device_memory = 0x70000003,
  ze_uninitialized = 0x78000001,
  ze_unsupported = 0x78000003,
  ze_invalid_argument = 0x78000004,
  ze_null_handle = 0x78000005,
  ze_null_pointer = 0x78000007,
  ze_invalid_synchronization_object = 0x7800000b
};
enum { ze_of_host = 1, ze_of_device = 2, ze_of_both = 3 };
enum { ze_is_subdevice = 2 };

typedef void* ze_handle;
typedef struct {
  uint32_t type;
  void* next;
} ze_base;
typedef struct {
  ze_base base;
  uint32_t kind, vendor, device, flags, tile, clock;
  uint64_t most_allocated;
  uint32_t contexts, priorities, threads, lanes, units, subslices, slices;
  uint64_t resolution;
  uint32_t bits, kernel_bits;
  uint8_t uuid[16];
  char name[256];
} ze_device_facts;
typedef struct {
  ze_base base;
  uint32_t flags, clock, bus;
  uint64_t bytes;
  char name[256];
} ze_memory_facts;
typedef struct {
  ze_base base;
  uint32_t domain, bus, device, function;
  int32_t generation, width;
  int64_t bytes_per_s;
} ze_pci_facts;
typedef struct {
  ze_base base;
  uint32_t kind;
  uint64_t id, page;
} ze_allocation_facts;
typedef struct {
  ze_base base;
  uint32_t ordinal, index, flags, mode, priority;
} ze_queue_description;
typedef struct {
  ze_base base;
  uint32_t ordinal, flags;
} ze_list_description;
typedef struct {
  ze_base base;
  uint32_t flags, count;
} ze_pool_description;
typedef struct {
  ze_base base;
  uint32_t index, signals, waits;
} ze_event_description;
typedef struct {
  ze_base base;
  uint32_t flags, ordinal;
} ze_memory_description;
typedef struct {
  char data[64];
} ze_ipc_handle;

static struct {
  int (*Init)(uint32_t);
  int (*DriverGet)(uint32_t*, ze_handle*);
  int (*DriverGetExtensionFunctionAddress)(ze_handle, const char*, void**);
  int (*DeviceGet)(ze_handle, uint32_t*, ze_handle*);
  int (*DeviceGetSubDevices)(ze_handle, uint32_t*, ze_handle*);
  int (*DeviceGetRootDevice)(ze_handle, ze_handle*);
  int (*DeviceGetProperties)(ze_handle, ze_device_facts*);
  int (*DeviceGetMemoryProperties)(ze_handle, uint32_t*, ze_memory_facts*);
  int (*DevicePciGetPropertiesExt)(ze_handle, ze_pci_facts*);
  int (*DeviceCanAccessPeer)(ze_handle, ze_handle, uint8_t*);
  int (*ContextCreate)(ze_handle, const void*, ze_handle*);
  int (*ContextDestroy)(ze_handle);
  int (*MemAllocDevice)(ze_handle, const void*, size_t, size_t, ze_handle, void**);
  int (*MemAllocHost)(ze_handle, const void*, size_t, size_t, void**);
  int (*MemAllocShared)(ze_handle, const void*, const void*, size_t, size_t, ze_handle, void**);
  int (*MemFree)(ze_handle, void*);
  int (*MemGetAllocProperties)(ze_handle, const void*, ze_allocation_facts*, ze_handle*);
  int (*MemGetAddressRange)(ze_handle, const void*, void**, size_t*);
  int (*MemGetIpcHandle)(ze_handle, const void*, ze_ipc_handle*);
  int (*MemPutIpcHandle)(ze_handle, ze_ipc_handle);
  int (*MemOpenIpcHandle)(ze_handle, ze_handle, ze_ipc_handle, uint32_t, void**);
  int (*MemCloseIpcHandle)(ze_handle, const void*);
  int (*EventPoolCreate)(ze_handle, const ze_pool_description*, uint32_t, ze_handle*, ze_handle*);
  int (*EventPoolDestroy)(ze_handle);
  int (*EventCreate)(ze_handle, const ze_event_description*, ze_handle*);
  int (*EventDestroy)(ze_handle);
  int (*EventHostSignal)(ze_handle);
  int (*EventHostReset)(ze_handle);
  int (*EventHostSynchronize)(ze_handle, uint64_t);
  int (*EventQueryStatus)(ze_handle);
  int (*CommandQueueCreate)(ze_handle, ze_handle, const ze_queue_description*, ze_handle*);
  int (*CommandQueueDestroy)(ze_handle);
  int (*CommandQueueExecuteCommandLists)(ze_handle, uint32_t, ze_handle*, ze_handle);
  int (*CommandQueueSynchronize)(ze_handle, uint64_t);
  int (*FenceCreate)(ze_handle, const ze_list_description*, ze_handle*);
  int (*FenceDestroy)(ze_handle);
  int (*FenceQueryStatus)(ze_handle);
  int (*FenceReset)(ze_handle);
  int (*FenceHostSynchronize)(ze_handle, uint64_t);
  int (*CommandListCreate)(ze_handle, ze_handle, const ze_list_description*, ze_handle*);
  int (*CommandListCreateImmediate)(ze_handle, ze_handle, const ze_queue_description*, ze_handle*);
  int (*CommandListDestroy)(ze_handle);
  int (*CommandListClose)(ze_handle);
  int (*CommandListReset)(ze_handle);
  int (*CommandListHostSynchronize)(ze_handle, uint64_t);
  int (*CommandListAppendMemoryCopy)(ze_handle, void*, const void*, size_t, ze_handle, uint32_t, ze_handle*);
  int (*CommandListAppendMemoryFill)(ze_handle, void*, const void*, size_t, size_t, ze_handle, uint32_t, ze_handle*);
  int (*CommandListAppendBarrier)(ze_handle, ze_handle, uint32_t, ze_handle*);
  int (*CommandListAppendSignalEvent)(ze_handle, ze_handle);
  int (*CommandListAppendWaitOnEvents)(ze_handle, uint32_t, ze_handle*);
  int (*ModuleCreate)(ze_handle, ze_handle, const void*, ze_handle*, ze_handle*);
  int (*ImageCreate)(ze_handle, ze_handle, const void*, ze_handle*);
} ze;

static ze_handle ze_driver, ze_context, ze_devices[32];
static uint32_t ze_device_count;

// What zeInit answers; there is a context and all devices are listed where it succeeds.
static inline int load_level_zero(void) {
  static const struct {
    ze_base head;
    uint32_t flags;
  } of_context = {{0xd, NULL}, 0};
  void* library = dlopen("libze_loader.so.1", RTLD_NOW);
  if (library == NULL) {
    printf("%s\n", dlerror());
    exit(1);
  }
#define ZE_FIND(name)                             \
  *(void**)&ze.name = dlsym(library, "ze" #name); \
  if (ze.name == NULL) {                          \
    printf("no ze%s\n", #name);                   \
    exit(1);                                      \
  }
  ZE_FIND(Init)
  ZE_FIND(DriverGet)
  ZE_FIND(DriverGetExtensionFunctionAddress)
  ZE_FIND(DeviceGet)
  ZE_FIND(DeviceGetSubDevices)
  ZE_FIND(DeviceGetRootDevice)
  ZE_FIND(DeviceGetProperties)
  ZE_FIND(DeviceGetMemoryProperties)
  ZE_FIND(DevicePciGetPropertiesExt)
  ZE_FIND(DeviceCanAccessPeer)
  ZE_FIND(ContextCreate)
  ZE_FIND(ContextDestroy)
  ZE_FIND(MemAllocDevice)
  ZE_FIND(MemAllocHost)
  ZE_FIND(MemAllocShared)
  ZE_FIND(MemFree)
  ZE_FIND(MemGetAllocProperties)
  ZE_FIND(MemGetAddressRange)
  ZE_FIND(MemGetIpcHandle)
  ZE_FIND(MemPutIpcHandle)
  ZE_FIND(MemOpenIpcHandle)
  ZE_FIND(MemCloseIpcHandle)
  ZE_FIND(EventPoolCreate)
  ZE_FIND(EventPoolDestroy)
  ZE_FIND(EventCreate)
  ZE_FIND(EventDestroy)
  ZE_FIND(EventHostSignal)
  ZE_FIND(EventHostReset)
  ZE_FIND(EventHostSynchronize)
  ZE_FIND(EventQueryStatus)
  ZE_FIND(CommandQueueCreate)
  ZE_FIND(CommandQueueDestroy)
  ZE_FIND(CommandQueueExecuteCommandLists)
  ZE_FIND(CommandQueueSynchronize)
  ZE_FIND(FenceCreate)
  ZE_FIND(FenceDestroy)
  ZE_FIND(FenceQueryStatus)
  ZE_FIND(FenceReset)
  ZE_FIND(FenceHostSynchronize)
  ZE_FIND(CommandListCreate)
  ZE_FIND(CommandListCreateImmediate)
  ZE_FIND(CommandListDestroy)
  ZE_FIND(CommandListClose)
  ZE_FIND(CommandListReset)
  ZE_FIND(CommandListHostSynchronize)
  ZE_FIND(CommandListAppendMemoryCopy)
  ZE_FIND(CommandListAppendMemoryFill)
  ZE_FIND(CommandListAppendBarrier)
  ZE_FIND(CommandListAppendSignalEvent)
  ZE_FIND(CommandListAppendWaitOnEvents)
  ZE_FIND(ModuleCreate)
  ZE_FIND(ImageCreate)
#undef ZE_FIND
  const int code = ze.Init(0);
  if (code != 0) return code;
  uint32_t drivers = 1;
  ze_device_count = sizeof ze_devices / sizeof *ze_devices;
  if (ze.DriverGet(&drivers, &ze_driver) != 0 || ze.ContextCreate(ze_driver, &of_context, &ze_context) != 0 ||
      ze.DeviceGet(ze_driver, &ze_device_count, ze_devices) != 0) {
    printf("Level Zero has no driver, context or devices\n");
    exit(1);
  }
  return 0;
}

static inline ze_handle ze_immediate_list(ze_handle device, int is_synchronous) {
  const ze_queue_description queue = {{0xe, NULL}, 0, 0, 0, is_synchronous ? 1 : 2, 0};
  ze_handle list = NULL;
  return ze.CommandListCreateImmediate(ze_context, device, &queue, &list) == 0 ? list : NULL;
}
