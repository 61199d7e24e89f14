#include "provider/deferred.hpp"

#include <rdma/fi_atomic.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/fi_trigger.h>
#include <stdlib.h>

#include "provider/attributes.hpp"
#include "provider/cntr.hpp"
#include "provider/domain.hpp"
#include "provider/log.hpp"
#include "provider/memory.hpp"
#include "provider/process.hpp"
#include "provider/progress.hpp"
#include "provider/refusal.hpp"

namespace dryfly::provider {

// From its call until its operation is over.
struct Deferred {
  Deferred* next;
  const fi_deferred_work* name;  // for FI_CANCEL_WORK
  Domain* domain;
  Counter* trigger;
  Counter* completion;
  std::uint64_t threshold;
  OperationId operation;  // 0: it has none yet
  std::uint32_t entries;  // of the NIC that it takes
};

namespace {

// Of the initial-exec model, as any other needs the loader's own library.
__attribute__((tls_model("initial-exec"))) thread_local constinit Deferred* issuing = nullptr;

// FI_CXI_CNTR_WB of fi_cxi_ext.h, which distributions' headers lack. When the work is queued a second one is, which
// writes the triggering counter back when that is one behind the threshold: programs let such work count itself there.
constexpr std::uint64_t writes_back = std::uint64_t{1} << 62;
// Its command has the operation's name, so marked.
constexpr std::uint64_t of_write_back = std::uint64_t{1} << 63;

std::uint64_t flags_of(const fi_deferred_work& asked) {
  switch (asked.op_type) {
    case FI_OP_SEND:
      return asked.op.msg->flags;
    case FI_OP_TSEND:
      return asked.op.tagged->flags;
    case FI_OP_READ:
    case FI_OP_WRITE:
      return asked.op.rma->flags;
    case FI_OP_ATOMIC:
      return asked.op.atomic->flags;
    case FI_OP_FETCH_ATOMIC:
      return asked.op.fetch_atomic->flags;
    case FI_OP_COMPARE_ATOMIC:
      return asked.op.compare_atomic->flags;
    default:
      return 0;
  }
}

void defer_write_back(const Deferred& work) {
  const Session session;
  if (!session) return;
  wire::Command command{};
  command.kind = wire::CommandKind::write_back;
  command.counter = command.trigger = work.trigger->number;
  command.threshold = work.threshold + 1;
  command.context = work.operation | of_write_back;
  session.channel().push(command, nullptr);
}

bool can_be_deferred(const fi_deferred_work& asked) {
  switch (asked.op_type) {
    case FI_OP_SEND:
      return (asked.op.msg->flags & FI_INJECT) == 0;
    case FI_OP_TSEND:
      return (asked.op.tagged->flags & FI_INJECT) == 0;
    case FI_OP_READ:
    case FI_OP_WRITE:
    case FI_OP_ATOMIC:
    case FI_OP_FETCH_ATOMIC:
    case FI_OP_COMPARE_ATOMIC:
      return true;
    case FI_OP_CNTR_SET:
    case FI_OP_CNTR_ADD:
      return asked.op.cntr->cntr != nullptr && asked.completion_cntr == nullptr;
    default:
      return false;
  }
}

// The count of another counter, which the NIC moves and tells of.
int defer_count(Deferred& work, const fi_deferred_work& asked) {
  const Session session;
  if (!session) return -FI_EOPBADSTATE;
  auto& counter = *object_of<Counter>(asked.op.cntr->cntr);
  Operation* operation = session.state().operations.add(OperationKind::count);
  if (operation == nullptr) return -FI_ENOMEM;
  operation->counter = &counter;
  ++counter.outstanding;
  operation->length = asked.op.cntr->value;
  operation->sets = asked.op_type == FI_OP_CNTR_SET;
  wire::Command command{};
  command.kind = wire::CommandKind::count;
  command.counter = counter.number;
  command.data = asked.op.cntr->value;
  command.flags = wire::command_flag::wants_completion | (operation->sets ? wire::command_flag::sets : 0);
  command.context = session.state().operations.id_of(*operation);
  issuing = &work;
  defer(*operation, command);
  issuing = nullptr;
  session.channel().push(command, nullptr);
  return 0;
}

ssize_t issue(Deferred& work, const fi_deferred_work& asked) {
  const auto& op = asked.op;
  switch (asked.op_type) {
    case FI_OP_SEND:
      return fi_sendmsg(op.msg->ep, &op.msg->msg, op.msg->flags & ~writes_back);
    case FI_OP_TSEND:
      return fi_tsendmsg(op.tagged->ep, &op.tagged->msg, op.tagged->flags & ~writes_back);
    case FI_OP_READ:
      return fi_readmsg(op.rma->ep, &op.rma->msg, op.rma->flags & ~writes_back);
    case FI_OP_WRITE:
      return fi_writemsg(op.rma->ep, &op.rma->msg, op.rma->flags & ~writes_back);
    case FI_OP_ATOMIC:
      return fi_atomicmsg(op.atomic->ep, &op.atomic->msg, op.atomic->flags & ~writes_back);
    case FI_OP_FETCH_ATOMIC: {
      const fi_op_fetch_atomic& call = *op.fetch_atomic;
      return fi_fetch_atomicmsg(call.ep, &call.msg, call.fetch.msg_iov, call.fetch.desc, call.fetch.iov_count,
                                call.flags & ~writes_back);
    }
    case FI_OP_COMPARE_ATOMIC: {
      const fi_op_compare_atomic& call = *op.compare_atomic;
      return fi_compare_atomicmsg(call.ep, &call.msg, call.compare.msg_iov, call.compare.desc, call.compare.iov_count,
                                  call.fetch.msg_iov, call.fetch.desc, call.fetch.iov_count, call.flags & ~writes_back);
    }
    default:
      return defer_count(work, asked);
  }
}

// FI_CXI_ENABLE_TRIG_OP_LIMIT: one entry of the service for each piece that waits; all of the service's are taken to be
// this process's. Without the limit further work waits in the NIC for an entry.
bool has_room(std::uint32_t entries) {
  const Session session;
  // Without a session the call itself is refused.
  if (!session || !session.state().environment.limited_work) return true;
  std::size_t waiting = 0;
  for (const Deferred* work = session.state().deferred; work != nullptr; work = work->next) waiting += work->entries;
  const std::uint32_t granted = session.channel().header().service.triggered_operations;
  if (waiting + entries <= granted) return true;
  tell(session.channel(), About::triggered,
       "%zu triggered operations wait at the NIC, of which the job's service (--service) grants %u entries (TLEs, less "
       "8 of the provider's own); fi_control(FI_QUEUE_WORK) answers \"No space left on device\" "
       "(FI_CXI_ENABLE_TRIG_OP_LIMIT=1)",
       waiting, granted);
  log("FI_QUEUE_WORK: Trig ops exhausted: in-use=%zu", waiting);
  return false;
}

void add(Deferred& work) {
  const Session session;
  ++work.trigger->users;
  ++work.domain->users;
  if (work.completion != nullptr) ++work.completion->users;
  work.next = session.state().deferred;
  session.state().deferred = &work;
}

// Out of the list. What it has is its caller's to end.
void remove(Process& state, Deferred& work) {
  Deferred** link = &state.deferred;
  while (*link != &work) link = &(*link)->next;
  *link = work.next;
  --work.trigger->users;
  --work.domain->users;
  if (work.completion != nullptr) --work.completion->users;
  free(&work);
}

int queue(Domain& domain, const fi_deferred_work* asked) {
  if (asked == nullptr || asked->triggering_cntr == nullptr) return -FI_EINVAL;
  if (!can_be_deferred(*asked)) {
    log("FI_QUEUE_WORK: operation %d cannot be deferred in this form", static_cast<int>(asked->op_type));
    return -FI_EINVAL;
  }
  const std::uint32_t entries = (flags_of(*asked) & writes_back) != 0 ? 2 : 1;
  if (!has_room(entries)) return -FI_ENOSPC;
  auto* work = allocate<Deferred>();
  if (work == nullptr) return -FI_ENOMEM;
  work->name = asked;
  work->domain = &domain;
  work->threshold = asked->threshold;
  work->trigger = object_of<Counter>(asked->triggering_cntr);
  work->completion = asked->completion_cntr != nullptr ? object_of<Counter>(asked->completion_cntr) : nullptr;
  work->entries = entries;
  add(*work);
  const bool counts = asked->op_type == FI_OP_CNTR_SET || asked->op_type == FI_OP_CNTR_ADD;
  if (!counts) issuing = work;
  const ssize_t error = issue(*work, *asked);
  issuing = nullptr;
  if (error != 0) {
    const Session session;
    remove(session.state(), *work);
  } else if (entries > 1) {
    defer_write_back(*work);
  }
  return static_cast<int>(error);
}

void drop(Process& state, Deferred& work) {
  if (Operation* operation = state.operations.find(work.operation); operation != nullptr) {
    if (operation->counter != nullptr) operation->counter->settle_one();
    state.operations.remove(*operation);
  }
  remove(state, work);
}

// One piece of work by its name, or all of the domain, of what still waits for its counter. The rest is on its way.
int cancel(const Domain& domain, const fi_deferred_work* name) {
  const Session session;
  if (session) take_all_visible(session);
  bool found = name == nullptr;
  for (Deferred* work = session.state().deferred; work != nullptr;) {
    Deferred* next = work->next;
    const bool waits = work->trigger->value < work->threshold;
    if (work->domain == &domain && waits && (name == nullptr || work->name == name)) {
      found = true;
      wire::Command command{};
      command.kind = wire::CommandKind::cancel_trigger;
      command.context = work->operation;
      if (session) session.channel().push(command, nullptr);
      if (work->entries > 1) {
        command.context |= of_write_back;
        if (session) session.channel().push(command, nullptr);
      }
      drop(session.state(), *work);
    }
    work = next;
  }
  return found ? 0 : -FI_ENOENT;
}

}  // namespace

Counter* counter_of_work() { return issuing != nullptr ? issuing->completion : nullptr; }

bool issues_work() { return issuing != nullptr; }

void defer(Operation& operation, wire::Command& command) {
  command.trigger = issuing->trigger->number;
  command.threshold = issuing->threshold;
  operation.work = issuing;
  issuing->operation = process().operations.id_of(operation);
}

void settle_work(Deferred& work) { remove(process(), work); }

void forget_work(const Endpoint& endpoint) {
  for (Deferred* work = process().deferred; work != nullptr;) {
    Deferred* next = work->next;
    const Operation* operation = process().operations.find(work->operation);
    if (operation != nullptr && operation->endpoint == &endpoint) drop(process(), *work);
    work = next;
  }
}

int control_work(Domain& domain, int what, void* argument) {
  const auto* work = static_cast<const fi_deferred_work*>(argument);
  switch (what) {
    case FI_QUEUE_WORK:
      return queue(domain, work);
    case FI_CANCEL_WORK:
      return work == nullptr ? -FI_EINVAL : cancel(domain, work);
    case FI_FLUSH_WORK:
      return cancel(domain, nullptr);
    default:
      return -FI_ENOSYS;  // domains know no other commands
  }
}

}  // namespace dryfly::provider
