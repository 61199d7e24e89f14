// Buffers on GPUs by Level Zero, which is below SYCL: the calls that accelerator.h has of the other runtimes.
// Declarations are our own, from the public specification.
#pragma once

#include <dlfcn.h>
#include <stdint.h>

#include "options.h"

enum { level_zero_devices_most = 64 };

struct level_zero_head {
  uint32_t type;
  void* next;
};
struct level_zero_queue {
  struct level_zero_head head;
  uint32_t ordinal, index, flags, mode, priority;
};
struct level_zero_memory {
  struct level_zero_head head;
  uint32_t flags, ordinal;
};

static struct {
  int (*init)(uint32_t);
  int (*drivers)(uint32_t*, void**);
  int (*devices)(void*, uint32_t*, void**);
  int (*context)(void*, const void*, void**);
  int (*allocate)(void*, const void*, size_t, size_t, void*, void**);
  int (*allocate_shared)(void*, const void*, const void*, size_t, size_t, void*, void**);
  int (*free)(void*, void*);
  int (*list)(void*, void*, const void*, void**);
  int (*copy)(void*, void*, const void*, size_t, void*, uint32_t, void**);
  void *of_context, *of_list, *all[level_zero_devices_most], *lists[level_zero_devices_most];
  uint32_t count, chosen;
} level_zero;

static const struct level_zero_memory level_zero_of_device = {{0x15, NULL}, 0, 0},
                                      level_zero_of_host = {{0x16, NULL}, 0, 0};

static int level_zero_count(int* count) {
  *count = (int)level_zero.count;
  return level_zero.count > 0 ? 0 : 1;
}

// Copies go by an immediate command list whose commands are over when they have been appended.
static int level_zero_set(int device) {
  static const struct level_zero_queue synchronous = {{0xe, NULL}, 0, 0, 0, 1, 0};
  level_zero.chosen = (uint32_t)device;
  void** const list = &level_zero.lists[device];
  const int code =
      *list != NULL ? 0 : level_zero.list(level_zero.of_context, level_zero.all[device], &synchronous, list);
  level_zero.of_list = *list;
  return code;
}

static int level_zero_allocate(void** to, size_t bytes) {
  void* device = level_zero.all[level_zero.chosen];
  return level_zero.allocate(level_zero.of_context, &level_zero_of_device, bytes, 4096, device, to);
}

static int level_zero_allocate_managed(void** to, size_t bytes, unsigned flags) {
  (void)flags;
  return level_zero.allocate_shared(level_zero.of_context, &level_zero_of_device, &level_zero_of_host, bytes, 4096,
                                    level_zero.all[level_zero.chosen], to);
}

static int level_zero_give_back(void* pointer) { return level_zero.free(level_zero.of_context, pointer); }

static int level_zero_copy(void* to, const void* from, size_t bytes, int way) {
  (void)way;
  return level_zero.copy(level_zero.of_list, to, from, bytes, NULL, 0, NULL);
}

// Null: there is none.
static inline void* level_zero_library(void) { return dlopen("libze_loader.so.1", RTLD_NOW); }

static inline void begin_level_zero(void* library) {
  static const struct level_zero_memory of_context = {{0xd, NULL}, 0, 0};  // that of a context is shorter
  static const char* const names[] = {"zeInit",
                                      "zeDriverGet",
                                      "zeDeviceGet",
                                      "zeContextCreate",
                                      "zeMemAllocDevice",
                                      "zeMemAllocShared",
                                      "zeMemFree",
                                      "zeCommandListCreateImmediate",
                                      "zeCommandListAppendMemoryCopy"};
  void** const calls[] = {
      (void**)&level_zero.init,    (void**)&level_zero.drivers,  (void**)&level_zero.devices,
      (void**)&level_zero.context, (void**)&level_zero.allocate, (void**)&level_zero.allocate_shared,
      (void**)&level_zero.free,    (void**)&level_zero.list,     (void**)&level_zero.copy};
  for (size_t at = 0; at < sizeof names / sizeof *names; ++at) {
    *calls[at] = dlsym(library, names[at]);
    if (*calls[at] == NULL) refuse(names[at], "the GPU runtime does not have this call");
  }
  void* driver = NULL;
  uint32_t one = 1;
  level_zero.count = level_zero_devices_most;
  if (level_zero.init(0) != 0 || level_zero.drivers(&one, &driver) != 0 ||
      level_zero.devices(driver, &level_zero.count, level_zero.all) != 0 ||
      level_zero.context(driver, &of_context, &level_zero.of_context) != 0)
    level_zero.count = 0;
}
