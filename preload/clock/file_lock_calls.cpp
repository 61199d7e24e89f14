// Locks of files and of parts of them. A rank that waits for one waits in the kernel, and whoever has it may wait in
// virtual time for this rank, or for what only somebody who looks again will see: Open MPI locks what its asynchronous
// reads and writes touch, and unlocks it in a later call's progress. So the wait is outside virtual time, and the rank
// comes back at an instant that the others have come to meanwhile.
#include <errno.h>
#include <stdarg.h>
#include <sys/types.h>
#include <unistd.h>

#include "preload/clock/compute.hpp"
#include "preload/clock/ledger.hpp"
#include "preload/export.hpp"
#include "preload/mpi/mpi_calls.hpp"
#include "preload/rank.hpp"
#include "preload/real.hpp"

// Not of fcntl.h: it may define these functions itself.
#include <linux/fcntl.h>

namespace dryfly::preload {

namespace {

using rank::CallMode;

// In an MPI call the node's turn is given back meanwhile, and the time is waiting; between calls it is the program's
// own.
class OutsideVirtualTime {
 public:
  OutsideVirtualTime() : in_call_(Nesting::inside()), mode_(dryfly_self.mode()), began_ps_(instant()) {
    if (in_call_) {
      end_call(mode_);
    } else {
      observe_compute(Observation::within_gap);
    }
    begin_call(CallMode::outside);
  }
  ~OutsideVirtualTime() {
    const int error = errno;
    end_call(CallMode::outside);
    if (in_call_) {
      begin_call(mode_);
      dryfly_self.waited_ps.fetch_add(instant() - began_ps_, std::memory_order_relaxed);
    }
    errno = error;
  }
  OutsideVirtualTime(const OutsideVirtualTime&) = delete;
  OutsideVirtualTime& operator=(const OutsideVirtualTime&) = delete;

 private:
  const bool in_call_;
  const CallMode mode_;
  const std::uint64_t began_ps_;
};

bool holds_virtual_time() {
  return phase() == Phase::running && dryfly_self.attached.load(std::memory_order_acquire) != 0 && on_main_thread() &&
         !on_served_fabric() && dryfly_self.mode() != CallMode::outside;
}

bool somebody_has_it(int result) { return result != 0 && (errno == EAGAIN || errno == EACCES || errno == EWOULDBLOCK); }

// `attempt` comes back at once, `wait` when the lock is there.
template <typename Attempt, typename Wait>
int lock(Attempt attempt, Wait wait) {
  if (!holds_virtual_time()) return wait();
  const int result = attempt();
  if (!somebody_has_it(result)) return result;
  const OutsideVirtualTime meanwhile;
  return wait();
}

int control(real::fcntl_t* function, int file, int command, void* argument) {
  const auto with = [=](int chosen) { return [=] { return function(file, chosen, argument); }; };
  switch (command) {
    case F_SETLKW:
      return lock(with(F_SETLK), with(F_SETLKW));
    case F_OFD_SETLKW:
      return lock(with(F_OFD_SETLK), with(F_OFD_SETLKW));
    default:
      return function(file, command, argument);
  }
}

template <typename Function, typename Offset>
int lock_part(Function function, int file, int command, Offset bytes) {
  const auto with = [=](int chosen) { return [=] { return function(file, chosen, bytes); }; };
  return command == F_LOCK ? lock(with(F_TLOCK), with(F_LOCK)) : function(file, command, bytes);
}

}  // namespace

}  // namespace dryfly::preload

using namespace dryfly::preload;

// Whatever the third argument is, a number or an address, and whether there is one: it is handed on as the kernel gets
// it.
#define DRYFLY_FILE_CONTROL(name)                          \
  DRYFLY_EXPORT int name(int file, int command, ...) {     \
    va_list arguments;                                     \
    va_start(arguments, command);                          \
    void* argument = va_arg(arguments, void*);             \
    va_end(arguments);                                     \
    return control(real::name(), file, command, argument); \
  }
DRYFLY_FILE_CONTROL(fcntl)
DRYFLY_FILE_CONTROL(fcntl64)

DRYFLY_EXPORT int flock(int file, int operation) noexcept {
  if ((operation & LOCK_NB) != 0 || (operation & LOCK_UN) != 0) return real::flock()(file, operation);
  return lock([=] { return real::flock()(file, operation | LOCK_NB); }, [=] { return real::flock()(file, operation); });
}

DRYFLY_EXPORT int lockf(int file, int command, off_t bytes) { return lock_part(real::lockf(), file, command, bytes); }
DRYFLY_EXPORT int lockf64(int file, int command, off64_t bytes) {
  return lock_part(real::lockf64(), file, command, bytes);
}
