// open and openat, by all the names that programs are compiled to call, for files that tell of the node
// (file_calls.hpp).
#include <stdarg.h>

#include "preload/export.hpp"
#include "preload/node/file_calls.hpp"
#include "preload/real.hpp"

// Not of fcntl.h: it may define these functions itself.
#include <linux/fcntl.h>

namespace dryfly::preload {

namespace {

bool takes_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

int open_path(real::open_t* function, const char* path, int flags, unsigned mode) {
  if (is_own_status(path)) return open_own_status(flags);
  char room[path_max];
  return function(on_node(path, room), flags, mode);
}

// A path that begins at the root does not ask where `folder` is.
int open_in(real::openat_t* function, int folder, const char* path, int flags, unsigned mode) {
  if (is_own_status(path)) return open_own_status(flags);
  char room[path_max];
  return function(folder, on_node(path, room), flags, mode);
}

}  // namespace

}  // namespace dryfly::preload

using namespace dryfly::preload;

#define DRYFLY_OPEN(name)                                    \
  DRYFLY_EXPORT int name(const char* path, int flags, ...) { \
    unsigned mode = 0;                                       \
    if (takes_mode(flags)) {                                 \
      va_list arguments;                                     \
      va_start(arguments, flags);                            \
      mode = va_arg(arguments, unsigned);                    \
      va_end(arguments);                                     \
    }                                                        \
    return open_path(real::name(), path, flags, mode);       \
  }

#define DRYFLY_OPENAT(name)                                              \
  DRYFLY_EXPORT int name(int folder, const char* path, int flags, ...) { \
    unsigned mode = 0;                                                   \
    if (takes_mode(flags)) {                                             \
      va_list arguments;                                                 \
      va_start(arguments, flags);                                        \
      mode = va_arg(arguments, unsigned);                                \
      va_end(arguments);                                                 \
    }                                                                    \
    return open_in(real::name(), folder, path, flags, mode);             \
  }

DRYFLY_OPEN(open)
DRYFLY_OPEN(open64)
DRYFLY_OPENAT(openat)
DRYFLY_OPENAT(openat64)

// Of programs that were compiled with checks of such calls: they have no mode.
DRYFLY_EXPORT int __open_2(const char* path, int flags) { return open_path(real::open(), path, flags, 0); }
DRYFLY_EXPORT int __open64_2(const char* path, int flags) { return open_path(real::open64(), path, flags, 0); }
DRYFLY_EXPORT int __openat_2(int folder, const char* path, int flags) {
  return open_in(real::openat(), folder, path, flags, 0);
}
DRYFLY_EXPORT int __openat64_2(int folder, const char* path, int flags) {
  return open_in(real::openat64(), folder, path, flags, 0);
}
