// Buffers in a GPU's memory (-d cuda|rocm|managed|sycl), by whichever GPU runtime is found: nothing is linked with one.
// Data is written and compared on the host, and copied.
#pragma once

#include <dlfcn.h>

#include "level_zero.h"
#include "options.h"

enum { any_way = 4 };  // of a copy: the runtime finds out

static struct {
  int (*count)(int*);
  int (*set)(int);
  int (*allocate)(void**, size_t);
  int (*allocate_managed)(void**, size_t, unsigned);
  int (*give_back)(void*);
  int (*copy)(void*, const void*, size_t, int);
} accelerator;

static char buffers_in = 'H';  // of this rank's buffers: H, D or M

static inline void* accelerator_library(const char* prefix) {
  static const char* const cuda[] = {"libcudart.so.12", "libcudart.so.13", "libcudart.so.11.0", "libcudart.so"};
  static const char* const rocm[] = {"libamdhip64.so.6", "libamdhip64.so.7", "libamdhip64.so.5", "libamdhip64.so"};
  void* library = NULL;
  for (int at = 0; at < 4 && library == NULL; ++at)
    library = dlopen((strcmp(prefix, "cuda") == 0 ? cuda : rocm)[at], RTLD_NOW);
  return library;
}

static inline void* accelerator_call(void* library, const char* prefix, const char* name) {
  char whole[64];
  snprintf(whole, sizeof whole, "%s%s", prefix, name);
  void* found = dlsym(library, whole);
  if (found == NULL) refuse(whole, "the GPU runtime does not have this call");
  return found;
}

static inline void check_accelerator(const char* what, int code) {
  if (code == 0) return;
  fprintf(stderr, "rank %d: %s answers error %d of the GPU runtime\n", my_rank, what, code);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

// The device of a rank is its number on its node, in turn where ranks are more.
static inline void choose_device(void) {
  MPI_Comm node;
  int here, devices = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &here);
  MPI_Comm_free(&node);
  check_accelerator("counting devices", accelerator.count(&devices));
  check_accelerator("choosing a device", accelerator.set(here % devices));
}

// Of CUDA and HIP, by the prefix of their names.
static inline void find_accelerator_calls(void* library, const char* prefix) {
#define ACCELERATOR_CALL(field, name) *(void**)&accelerator.field = accelerator_call(library, prefix, name)
  ACCELERATOR_CALL(count, "GetDeviceCount");
  ACCELERATOR_CALL(set, "SetDevice");
  ACCELERATOR_CALL(allocate, "Malloc");
  ACCELERATOR_CALL(allocate_managed, "MallocManaged");
  ACCELERATOR_CALL(give_back, "Free");
  ACCELERATOR_CALL(copy, "Memcpy");
#undef ACCELERATOR_CALL
}

static inline void find_level_zero_calls(void* library) {
  begin_level_zero(library);
  accelerator.count = level_zero_count;
  accelerator.set = level_zero_set;
  accelerator.allocate = level_zero_allocate;
  accelerator.allocate_managed = level_zero_allocate_managed;
  accelerator.give_back = level_zero_give_back;
  accelerator.copy = level_zero_copy;
}

// Of whichever runtime there is. 0: there is none.
static inline int find_any_runtime(void) {
  static const char* const prefixes[] = {"cuda", "hip"};
  for (int at = 0; at < 2; ++at) {
    void* library = accelerator_library(prefixes[at]);
    if (library == NULL) continue;
    find_accelerator_calls(library, prefixes[at]);
    return 1;
  }
  void* library = level_zero_library();
  if (library != NULL) find_level_zero_calls(library);
  return library != NULL;
}

// What -d asks for, once ranks know whether they send.
static inline void begin_accelerator(int is_sender) {
  if (options.accelerator == no_accelerator) return;
  buffers_in = is_sender ? options.from : options.to;
  int found = 0;
  if (options.accelerator == managed_accelerator) {
    found = find_any_runtime();
  } else if (options.accelerator == sycl_accelerator) {
    void* library = level_zero_library();
    if (library != NULL) find_level_zero_calls(library);
    found = library != NULL;
  } else {
    const char* prefix = options.accelerator == rocm_accelerator ? "hip" : "cuda";
    void* library = accelerator_library(prefix);
    if (library != NULL) find_accelerator_calls(library, prefix);
    found = library != NULL;
  }
  if (!found)
    refuse("-d", "no library of this GPU runtime is found; under dryfly `dryfly gpu MACHINE` says which a machine has");
  choose_device();
}

static inline void* place_buffer(size_t bytes) {
  void* buffer = NULL;
  const size_t least = bytes > 0 ? bytes : 1;
  check_accelerator("taking memory", buffers_in == 'M' ? accelerator.allocate_managed(&buffer, least, 1)
                                                       : accelerator.allocate(&buffer, least));
  return buffer;
}

// A buffer's bytes where the host may touch them, with what is in it or with anything.
static inline char* on_host(char* buffer, size_t bytes, int loaded) {
  if (buffers_in != 'D') return buffer;
  char* copy = malloc(bytes > 0 ? bytes : 1);
  if (copy == NULL) refuse("-m", "there is not enough memory for a copy of a buffer");
  if (loaded) check_accelerator("a copy to the host", accelerator.copy(copy, buffer, bytes, any_way));
  return copy;
}

static inline void back_to_buffer(char* buffer, char* host, size_t bytes) {
  if (host == buffer) return;
  check_accelerator("a copy from the host", accelerator.copy(buffer, host, bytes, any_way));
  free(host);
}

static inline const char* name_of_place(char letter) {
  return letter == 'D' ? "DEVICE (D)" : letter == 'M' ? "MANAGED MEMORY (M)" : "HOST (H)";
}
