// The name of the host, as the program and MPI ask for it (MPI_Get_processor_name): that of the simulated node, which
// dryfly-launch puts into DRYFLY_NODE_NAME. Of uname, everything else is the real host's. Left out: what is read from
// /proc or /etc, and address look-ups.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "preload/export.hpp"
#include "preload/rank.hpp"

namespace dryfly::preload {

namespace {

// Null outside a run.
const char* node_name() {
  const char* name = belongs_to_run() ? getenv("DRYFLY_NODE_NAME") : nullptr;
  return name != nullptr && *name != 0 ? name : nullptr;
}

int real_uname(utsname* to) { return static_cast<int>(syscall(SYS_uname, to)); }

}  // namespace

}  // namespace dryfly::preload

using namespace dryfly::preload;

DRYFLY_EXPORT int uname(utsname* to) noexcept {
  const int status = real_uname(to);
  const char* name = node_name();
  if (status == 0 && name != nullptr) {
    strncpy(to->nodename, name, sizeof to->nodename - 1);
    to->nodename[sizeof to->nodename - 1] = 0;
  }
  return status;
}

DRYFLY_EXPORT int gethostname(char* to, size_t bytes) noexcept {
  utsname host{};
  if (uname(&host) != 0) return -1;
  const size_t length = strlen(host.nodename) + 1;
  memcpy(to, host.nodename, length < bytes ? length : bytes);
  if (length <= bytes) return 0;
  errno = ENAMETOOLONG;
  return -1;
}
