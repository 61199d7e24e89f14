#include "provider/wait.hpp"

#include <fcntl.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include "provider/cntr.hpp"
#include "provider/cq.hpp"
#include "provider/deadline.hpp"
#include "provider/log.hpp"
#include "provider/memory.hpp"
#include "provider/process.hpp"
#include "provider/progress.hpp"

namespace dryfly::provider {

namespace {

bool has_something(const fid* object) {
  if (object->fclass == FI_CLASS_CQ) return object_of<const CompletionQueue>(object)->size() != 0;
  if (object->fclass != FI_CLASS_CNTR) return false;
  const auto* counter = object_of<const Counter>(object);
  return counter->value != counter->last_read;
}

// The one descriptor of a set that never changes.
int give_polled(const WaitObject& object, fi_wait_pollfd& to) {
  const bool fits = to.nfds >= 1;
  to.change_index = 1;
  to.nfds = 1;
  if (!fits) return -FI_ETOOSMALL;
  to.fd[0] = {.fd = object.descriptor, .events = POLLIN, .revents = 0};
  return 0;
}

}  // namespace

int open_wait_object(fi_wait_obj asked, WaitObject& made) {
  made = {asked, -1};
  // Wait sets and FI_WAIT_MUTEX_COND are not offered by the machine's provider either.
  if (asked != FI_WAIT_FD && asked != FI_WAIT_POLLFD) return wait_object_accepted(asked) ? 0 : -FI_ENOSYS;
  const Session session;
  // In a run virtual time waits for the rank, so one that slept in poll() until time has passed would stop it for good.
  if (!session || !session.channel().served()) {
    log("FI_WAIT_FD and FI_WAIT_POLLFD are offered on a served fabric only");
    return -FI_ENOSYS;
  }
  made.descriptor = fcntl(session.channel().wake_descriptor(), F_DUPFD_CLOEXEC, 0);
  return made.descriptor >= 0 ? 0 : -FI_ENOMEM;
}

void close_wait_object(const WaitObject& object) {
  if (object.descriptor >= 0) close(object.descriptor);
}

int control_wait_object(const WaitObject& object, int command, void* argument) {
  if (command == FI_GETWAITOBJ) {
    *static_cast<fi_wait_obj*>(argument) = object.kind;
    return 0;
  }
  if (command != FI_GETWAIT || object.descriptor < 0) return -FI_ENOSYS;
  if (object.kind == FI_WAIT_POLLFD) return give_polled(object, *static_cast<fi_wait_pollfd*>(argument));
  *static_cast<int*>(argument) = object.descriptor;
  return 0;
}

int try_wait(fid_fabric*, fid** objects, int count) {
  const Session session;
  if (!session || !session.channel().served()) return -FI_ENOSYS;
  progress(session);
  for (int i = 0; i < count; ++i) {
    if (has_something(objects[i])) return -FI_EAGAIN;
  }
  return session.channel().may_sleep() ? 0 : -FI_EAGAIN;
}

}  // namespace dryfly::provider
