// MPICH's shared memory without a name in /dev/shm. There it would stay when a rank is killed, and count against the
// 64 MB that containers have; an anonymous one does neither.
//
// Where each rank counts as alone on a node (MPIR_CVAR_NOLOCAL), nobody but the rank that makes such a segment ever
// opens it. Where the ranks of a node share memory, the name is a link in the run's folder (DRYFLY_SEGMENTS) to the
// descriptor of the rank that made it, and goes with the folder.
//
// Only for names that begin as MPICH's do, and only when the MPI library asks. Older versions make the segment with
// mkstemp and remove the name at once, which a shared node leaves as it is; newer ones with shm_open and remove it in
// MPI_Finalize.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preload/caller.hpp"
#include "preload/export.hpp"
#include "preload/memory/node_memory.hpp"
#include "preload/rank.hpp"
#include "preload/real.hpp"

namespace dryfly::preload {

namespace {

bool begins_with(const char* text, const char* beginning) {
  return text != nullptr && strncmp(text, beginning, strlen(beginning)) == 0;
}

bool is_private_segment(const char* name, const char* beginning, const void* caller) {
  if (!begins_with(name, beginning) || !belongs_to_run() || !lives_in_real_time(caller)) return false;
  if (nodes_share_memory()) return true;
  const char* alone = getenv("MPIR_CVAR_NOLOCAL");
  return alone != nullptr && strcmp(alone, "1") == 0;
}

constexpr const char* segment_name = "/mpich_";
constexpr const char* segment_file = "/dev/shm/mpich_";

bool link_path(const char* name, char (&path)[4096]) {
  return snprintf(path, sizeof path, "%s/%s", getenv("DRYFLY_SEGMENTS"), strrchr(name, '/') + 1) <
         static_cast<int>(sizeof path);
}

// The descriptor stays open for those that come later; it ends with the process.
int make_segment(const char* name) {
  const int file = memfd_create(strrchr(name, '/') + 1, MFD_CLOEXEC);
  if (file < 0 || !nodes_share_memory()) return file;
  char path[4096];
  char target[64];
  snprintf(target, sizeof target, "/proc/%d/fd/%d", static_cast<int>(getpid()), file);
  if (!link_path(name, path) || symlink(target, path) != 0) {
    const int error = errno;
    close(file);
    errno = error;  // EEXIST as from shm_open: MPICH tries another name
    return -1;
  }
  return fcntl(file, F_DUPFD_CLOEXEC, 0);
}

int open_segment(const char* name, int flags) {
  char path[4096];
  if (!link_path(name, path)) return -1;
  return open(path, (flags & O_ACCMODE) | O_CLOEXEC);
}

}  // namespace

}  // namespace dryfly::preload

using namespace dryfly::preload;

DRYFLY_EXPORT int shm_open(const char* name, int flags, mode_t mode) {
  if ((flags & O_CREAT) != 0 && is_private_segment(name, segment_name, __builtin_return_address(0))) {
    return make_segment(name);
  }
  if (nodes_share_memory() && is_private_segment(name, segment_name, __builtin_return_address(0))) {
    return open_segment(name, flags);
  }
  if (real::shm_open() == nullptr) {
    errno = ENOSYS;  // a C library before 2.34, and the program has not loaded librt
    return -1;
  }
  return real::shm_open()(name, flags, mode);
}

DRYFLY_EXPORT int shm_unlink(const char* name) {
  if (is_private_segment(name, segment_name, __builtin_return_address(0))) return 0;
  if (real::shm_unlink() == nullptr) {
    errno = ENOSYS;
    return -1;
  }
  return real::shm_unlink()(name);
}

DRYFLY_EXPORT int mkstemp(char* name) {
  if (!nodes_share_memory() && is_private_segment(name, segment_file, __builtin_return_address(0))) {
    return make_segment(name);
  }
  return real::mkstemp()(name);
}

DRYFLY_EXPORT int unlink(const char* name) noexcept {
  if (!nodes_share_memory() && is_private_segment(name, segment_file, __builtin_return_address(0))) return 0;
  return real::unlink()(name);
}
