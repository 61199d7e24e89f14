// MPICH's shared memory without a name. Its ranks each count as alone on a node (MPIR_CVAR_NOLOCAL), so nobody but
// the rank that makes such a segment ever opens it. Under a name it would stay in /dev/shm when a rank is killed, and
// count against the 64 MB that containers have there; an anonymous one does neither.
//
// Only for names that begin as MPICH's do, and only when the MPI library asks. Older versions make the segment with
// mkstemp and remove the name at once; newer ones with shm_open and remove it in MPI_Finalize.
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock/caller.hpp"
#include "clock/export.hpp"
#include "clock/rank.hpp"
#include "clock/real.hpp"

namespace dryfly::preload {

namespace {

bool begins_with(const char* text, const char* beginning) {
  return text != nullptr && strncmp(text, beginning, strlen(beginning)) == 0;
}

bool is_private_segment(const char* name, const char* beginning, const void* caller) {
  if (!begins_with(name, beginning) || !belongs_to_run() || !lives_in_real_time(caller)) return false;
  const char* alone = getenv("MPIR_CVAR_NOLOCAL");
  return alone != nullptr && strcmp(alone, "1") == 0;
}

constexpr const char* segment_name = "/mpich_";
constexpr const char* segment_file = "/dev/shm/mpich_";

}  // namespace

}  // namespace dryfly::preload

using namespace dryfly::preload;

DRYFLY_EXPORT int shm_open(const char* name, int flags, mode_t mode) {
  if ((flags & O_CREAT) != 0 && is_private_segment(name, segment_name, __builtin_return_address(0))) {
    return memfd_create(name + 1, MFD_CLOEXEC);
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
  if (is_private_segment(name, segment_file, __builtin_return_address(0))) {
    return memfd_create(strrchr(name, '/') + 1, MFD_CLOEXEC);
  }
  return real::mkstemp()(name);
}

DRYFLY_EXPORT int unlink(const char* name) noexcept {
  if (is_private_segment(name, segment_file, __builtin_return_address(0))) return 0;
  return real::unlink()(name);
}
