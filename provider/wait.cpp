#include "provider/wait.hpp"

#include <fcntl.h>
#include <poll.h>
#include <rdma/fi_errno.h>
#include <unistd.h>

#include "provider/cq.hpp"
#include "provider/log.hpp"
#include "provider/memory.hpp"
#include "provider/process.hpp"
#include "provider/progress.hpp"

namespace dryfly::provider {

namespace {

// 0 if the program may sleep on this object's descriptor, as far as the object is concerned.
int quiet(const fid* object) {
  switch (object->fclass) {
    case FI_CLASS_CQ: {
      const auto& queue = *object_of<const CompletionQueue>(object);
      if (queue.wait.descriptor < 0) return -FI_EINVAL;
      return queue.size() == 0 ? 0 : -FI_EAGAIN;
    }
    case FI_CLASS_EQ:
    case FI_CLASS_CNTR:
    case FI_CLASS_WAIT:
      return -FI_ENOSYS;  // they have no descriptor that one could sleep on, as with libfabric's cxi provider
    default:
      return -FI_EINVAL;
  }
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
  if (asked == FI_WAIT_NONE) return 0;
  if (asked != FI_WAIT_UNSPEC && asked != FI_WAIT_FD && asked != FI_WAIT_POLLFD) return -FI_ENOSYS;
  const Session session;
  // In a run virtual time waits for the rank, so one that slept in poll() until time has passed would stop it for good.
  if (!session || session.channel().header().served == 0) {
    if (asked == FI_WAIT_UNSPEC) return 0;
    log("FI_WAIT_FD and FI_WAIT_POLLFD are offered on a served fabric only");
    return -FI_ENOSYS;
  }
  if (asked == FI_WAIT_UNSPEC) made.kind = FI_WAIT_FD;
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
  if (command != FI_GETWAIT) return -FI_ENOSYS;
  if (object.descriptor < 0) return -FI_ENODATA;
  if (object.kind == FI_WAIT_POLLFD) return give_polled(object, *static_cast<fi_wait_pollfd*>(argument));
  *static_cast<int*>(argument) = object.descriptor;
  return 0;
}

int try_wait(fid_fabric*, fid** objects, int count) {
  const Session session;
  if (!session) return -FI_EOPBADSTATE;
  progress(session);
  for (int i = 0; i < count; ++i) {
    if (const int error = quiet(objects[i]); error != 0) return error;
  }
  return session.channel().polls().may_sleep() ? 0 : -FI_EAGAIN;
}

}  // namespace dryfly::provider
