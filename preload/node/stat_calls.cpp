// Whether a file that tells of the node is there, and what it is: stat, access and readlink, by all the names that
// programs are compiled to call (file_calls.hpp). They go to the kernel, whose calls these functions are. A processor
// that the run's folder has as a link (processor_files.hpp) is a folder, as Linux has it.
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "preload/export.hpp"
#include "preload/node/file_calls.hpp"
#include "preload/real.hpp"
#include "rank/kernel_call.hpp"

// Not of fcntl.h and sys/stat.h: they may define these functions themselves.
#include <linux/fcntl.h>

struct statx;

namespace dryfly::preload {

namespace {

// In `room`, where the node's file stands for this one.
bool is_of_node(const char* path, char (&room)[path_max]) { return on_node(path, room) != path; }

int call(long number, long a, const void* b, long c, long d, long e) {
  const long arguments[6] = {a, reinterpret_cast<long>(b), c, d, e, 0};
  return static_cast<int>(rank::kernel_call(number, arguments));
}

int status_of(int folder, const char* path, void* to, int flags) {
  char room[path_max];
  const auto there = reinterpret_cast<long>(to);
  if (is_of_node(path, room)) {
    return call(SYS_newfstatat, AT_FDCWD, room, there, flags & ~AT_SYMLINK_NOFOLLOW, 0);
  }
  return call(SYS_newfstatat, folder, path, there, flags, 0);
}

// Files of the node are the user's own, so that real and effective ids are alike.
int access_to(int folder, const char* path, int mode, int flags) {
  char room[path_max];
  if (is_of_node(path, room)) return call(SYS_faccessat, AT_FDCWD, room, mode, 0, 0);
  if (flags == 0) return call(SYS_faccessat, folder, path, mode, 0, 0);
  return real::faccessat()(folder, path, mode, flags);
}

ssize_t target_of(int folder, const char* path, char* to, std::size_t bytes) {
  char room[path_max];
  if (!is_of_node(path, room)) {
    const long arguments[6] = {folder, reinterpret_cast<long>(path), reinterpret_cast<long>(to),
                               static_cast<long>(bytes)};
    return rank::kernel_call(SYS_readlinkat, arguments);
  }
  if (call(SYS_faccessat, AT_FDCWD, room, F_OK, 0, 0) == 0) errno = EINVAL;  // it is no link
  return -1;
}

}  // namespace

}  // namespace dryfly::preload

using namespace dryfly::preload;

#define DRYFLY_STATUS(name, flags) \
  DRYFLY_EXPORT int name(const char* path, void* to) noexcept { return status_of(AT_FDCWD, path, to, flags); }
#define DRYFLY_OLD_STATUS(name, flags) \
  DRYFLY_EXPORT int name(int, const char* path, void* to) noexcept { return status_of(AT_FDCWD, path, to, flags); }
#define DRYFLY_STATUS_AT(name)                                                         \
  DRYFLY_EXPORT int name(int folder, const char* path, void* to, int flags) noexcept { \
    return status_of(folder, path, to, flags);                                         \
  }
#define DRYFLY_OLD_STATUS_AT(name)                                                          \
  DRYFLY_EXPORT int name(int, int folder, const char* path, void* to, int flags) noexcept { \
    return status_of(folder, path, to, flags);                                              \
  }

DRYFLY_STATUS(stat, 0)
DRYFLY_STATUS(stat64, 0)
DRYFLY_STATUS(lstat, AT_SYMLINK_NOFOLLOW)
DRYFLY_STATUS(lstat64, AT_SYMLINK_NOFOLLOW)
DRYFLY_STATUS_AT(fstatat)
DRYFLY_STATUS_AT(fstatat64)
// What programs call that were compiled before glibc 2.33; the first argument is the layout, of which there is one.
DRYFLY_OLD_STATUS(__xstat, 0)
DRYFLY_OLD_STATUS(__xstat64, 0)
DRYFLY_OLD_STATUS(__lxstat, AT_SYMLINK_NOFOLLOW)
DRYFLY_OLD_STATUS(__lxstat64, AT_SYMLINK_NOFOLLOW)
DRYFLY_OLD_STATUS_AT(__fxstatat)
DRYFLY_OLD_STATUS_AT(__fxstatat64)

DRYFLY_EXPORT int statx(int folder, const char* path, int flags, unsigned mask, struct statx* to) noexcept {
  char room[path_max];
  const auto there = reinterpret_cast<long>(to);
  if (is_of_node(path, room)) {
    return call(SYS_statx, AT_FDCWD, room, flags & ~AT_SYMLINK_NOFOLLOW, static_cast<long>(mask), there);
  }
  return call(SYS_statx, folder, path, flags, static_cast<long>(mask), there);
}

DRYFLY_EXPORT int access(const char* path, int mode) noexcept { return access_to(AT_FDCWD, path, mode, 0); }
DRYFLY_EXPORT int faccessat(int folder, const char* path, int mode, int flags) noexcept {
  return access_to(folder, path, mode, flags);
}
DRYFLY_EXPORT int euidaccess(const char* path, int mode) noexcept {
  return access_to(AT_FDCWD, path, mode, AT_EACCESS);
}
DRYFLY_EXPORT int eaccess(const char* path, int mode) noexcept { return access_to(AT_FDCWD, path, mode, AT_EACCESS); }

DRYFLY_EXPORT ssize_t readlink(const char* path, char* to, size_t bytes) noexcept {
  return target_of(AT_FDCWD, path, to, bytes);
}
DRYFLY_EXPORT ssize_t readlinkat(int folder, const char* path, char* to, size_t bytes) noexcept {
  return target_of(folder, path, to, bytes);
}
