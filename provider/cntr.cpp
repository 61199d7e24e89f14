#include "provider/cntr.hpp"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "provider/deadline.hpp"
#include "provider/log.hpp"
#include "provider/memory.hpp"
#include "provider/process.hpp"
#include "provider/progress.hpp"
#include "provider/service.hpp"
#include "provider/streams.hpp"
#include "provider/unsupported.hpp"

namespace dryfly::provider {

namespace {

// A program that reads the same value again is polling. Time passes in that only while something is under way that
// the counter will count: a flush with nothing to wait for must not wait.
std::uint64_t read(fid_cntr* fid) {
  const Session session;
  auto& counter = *object_of<Counter>(fid);
  if (!session) return counter.value;
  session.channel().boundary(rank::Boundary::counter, 0);
  session.channel().polls().settle();  // the value must not depend on how far the simulator happens to be
  const bool reported = progress(session);
  session.state().news.seen(counter.outlet, 0);
  const bool polls = counter.value == counter.last_read && counter.outstanding != 0;
  if (polls && !session.channel().polls().take_free_poll() && empty_poll(session, reported)) {
    take_all_visible(session);
  }
  session.state().news.seen(counter.outlet, 0);
  if (counter.value != counter.last_read) session.channel().polls().begin_free_polls();
  counter.last_read = counter.value;
  show_value(session, counter);
  return counter.value;
}

std::uint64_t read_errors(fid_cntr* fid) {
  const Session session;
  auto& counter = *object_of<Counter>(fid);
  if (!session) return counter.errors;
  take_all_visible(session);
  session.state().news.seen(counter.outlet, 0);
  return counter.errors;
}

// The NIC keeps the counter, for work may wait for it there.
void tell_nic(const Session& session, const Counter& counter, std::uint64_t value, std::uint32_t flags) {
  if (!session) return;
  wire::Command command = change_of(counter, value, flags);
  session.channel().push(command, nullptr);
}

int add(fid_cntr* fid, std::uint64_t value) {
  if (value > counter_value_max) return -FI_EINVAL;
  const Session session;
  auto& counter = *object_of<Counter>(fid);
  counter.value += value;
  tell_nic(session, counter, value, 0);
  return 0;
}

int add_errors(fid_cntr* fid, std::uint64_t value) {
  if (value > counter_errors_max) return -FI_EINVAL;
  const Session session;
  object_of<Counter>(fid)->errors += value;
  return 0;
}

int set(fid_cntr* fid, std::uint64_t value) {
  if (value > counter_value_max) return -FI_EINVAL;
  const Session session;
  auto& counter = *object_of<Counter>(fid);
  counter.value = value;
  tell_nic(session, counter, value, wire::command_flag::sets);
  return 0;
}

int set_errors(fid_cntr* fid, std::uint64_t value) {
  if (value > counter_errors_max) return -FI_EINVAL;
  const Session session;
  object_of<Counter>(fid)->errors = value;
  return 0;
}

int wait(fid_cntr* fid, std::uint64_t threshold, int timeout_ms) {
  auto& counter = *object_of<Counter>(fid);
  if (counter.wait == FI_WAIT_NONE || threshold > counter_value_max) return -FI_EINVAL;
  Deadline deadline(timeout_ms);
  std::uint64_t errors_before = 0;
  for (bool first = true;; first = false) {
    const Session session;
    if (!session) return -FI_EOPBADSTATE;
    if (first) errors_before = counter.errors;
    progress(session);
    session.state().news.seen(counter.outlet, 0);
    if (counter.value >= threshold) {
      show_value(session, counter);
      return 0;
    }
    if (counter.errors != errors_before) return -FI_EAVAIL;
    if (deadline.passed(session)) return -FI_ETIMEDOUT;
    deadline.wait(session);
  }
}

int close_counter(fid* fid) {
  const Session session;
  auto* counter = object_of<Counter>(fid);
  if (counter->users != 0) return -FI_EBUSY;
  session.state().news.remove(counter->outlet);
  close_extension(session, *counter);
  if (session && counter->domain->has_nics()) give_back_counter(session.channel(), counter->domain->nic);
  --counter->domain->users;
  free(counter);
  return 0;
}

// A counter has no descriptor.
int control(fid*, int, void*) { return -FI_EINVAL; }

fi_ops object_calls = {
    .size = sizeof(fi_ops),
    .close = close_counter,
    .bind = unsupported,
    .control = control,
    .ops_open = open_counter_extension,
};

fi_ops_cntr counter_calls = {
    .size = sizeof(fi_ops_cntr),
    .read = read,
    .readerr = read_errors,
    .add = add,
    .set = set,
    .wait = wait,
    .adderr = add_errors,
    .seterr = set_errors,
};

}  // namespace

int open_counter(fid_domain* domain, fi_cntr_attr* attributes, fid_cntr** fid, void* context) {
  // Operations are counted, not bytes.
  if (attributes != nullptr &&
      (attributes->events != FI_CNTR_EVENTS_COMP || !wait_object_accepted(attributes->wait_obj))) {
    log("fi_cntr_open: events %d with wait object %d are not offered", static_cast<int>(attributes->events),
        static_cast<int>(attributes->wait_obj));
    return -FI_ENOSYS;
  }
  auto* counter = allocate<Counter>();
  if (counter == nullptr) return -FI_ENOMEM;
  const Session session;
  const Domain& of = *object_of<Domain>(domain);
  const int error = session && of.has_nics() ? take_counter(session.channel(), of.nic) : 0;
  if (error != 0) {
    free(counter);
    return error;
  }
  counter->wait = attributes != nullptr ? attributes->wait_obj : FI_WAIT_YIELD;
  counter->fid.fid.fclass = FI_CLASS_CNTR;
  counter->fid.fid.context = context;
  counter->fid.fid.ops = &object_calls;
  counter->fid.ops = &counter_calls;
  counter->domain = object_of<Domain>(domain);
  counter->number = ++session.state().counters_opened;
  ++counter->domain->users;
  session.state().news.add(counter->outlet);
  *fid = &counter->fid;
  return 0;
}

}  // namespace dryfly::provider
