// The calls of cudart.h over Level Zero, for checks of messages: a stream is an immediate command list.
#pragma once

#include "level_zero.h"

static uint32_t ze_chosen;

static int ze_cuda_count(int* count) {
  *count = (int)ze_device_count;
  return ze_device_count == 0 ? 100 : 0;
}
static int ze_cuda_set(int device) {
  if (device < 0 || (uint32_t)device >= ze_device_count) return 101;
  ze_chosen = (uint32_t)device;
  return 0;
}
static int ze_cuda_malloc(void** to, size_t bytes) {
  static const ze_memory_description memory = {{0x15, NULL}, 0, 0};
  return ze.MemAllocDevice(ze_context, &memory, bytes, 64, ze_devices[ze_chosen], to);
}
static int ze_cuda_malloc_host(void** to, size_t bytes) {
  static const ze_memory_description memory = {{0x16, NULL}, 0, 0};
  return ze.MemAllocHost(ze_context, &memory, bytes, 64, to);
}
static int ze_cuda_malloc_managed(void** to, size_t bytes, unsigned flags) {
  static const ze_memory_description memory = {{0x15, NULL}, 0, 0};
  (void)flags;
  return ze.MemAllocShared(ze_context, &memory, &memory, bytes, 64, ze_devices[ze_chosen], to);
}
static int ze_cuda_free(void* pointer) { return ze.MemFree(ze_context, pointer); }
static ze_handle ze_own_list(void) {
  static ze_handle lists[32];
  if (lists[ze_chosen] == NULL) lists[ze_chosen] = ze_immediate_list(ze_devices[ze_chosen], 1);
  return lists[ze_chosen];
}
static int ze_cuda_copy(void* to, const void* from, size_t bytes, int way) {
  (void)way;
  return ze.CommandListAppendMemoryCopy(ze_own_list(), to, from, bytes, NULL, 0, NULL);
}
static int ze_cuda_copy_async(void* to, const void* from, size_t bytes, int way, void* stream) {
  (void)way;
  return ze.CommandListAppendMemoryCopy(stream != NULL ? stream : ze_own_list(), to, from, bytes, NULL, 0, NULL);
}
static int ze_cuda_fill(void* to, int value, size_t bytes) {
  const unsigned char byte = (unsigned char)value;
  return ze.CommandListAppendMemoryFill(ze_own_list(), to, &byte, 1, bytes, NULL, 0, NULL);
}
static int ze_cuda_synchronize(void) { return ze.CommandListHostSynchronize(ze_own_list(), UINT64_MAX); }
static int ze_cuda_stream(void** to) {
  *to = ze_immediate_list(ze_devices[ze_chosen], 0);
  return *to != NULL ? 0 : 1;
}
static int ze_cuda_stream_synchronize(void* stream) { return ze.CommandListHostSynchronize(stream, UINT64_MAX); }
static int ze_cuda_close(void* pointer) { return ze.MemCloseIpcHandle(ze_context, pointer); }
