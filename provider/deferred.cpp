#include "provider/deferred.hpp"

#include <rdma/fi_atomic.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdlib.h>

#include "provider/attributes.hpp"
#include "provider/cntr.hpp"
#include "provider/domain.hpp"
#include "provider/log.hpp"
#include "provider/memory.hpp"
#include "provider/process.hpp"

namespace dryfly::provider {

// The caller may reuse all that it has handed over, but for the data: the call is kept with the one part of each
// vector.
struct Deferred {
  Deferred* next;
  const fi_deferred_work* name;  // for FI_CANCEL_WORK
  Domain* domain;
  Counter* trigger;
  Counter* completion;
  std::uint64_t threshold;
  fi_op_type type;
  union {
    fi_op_msg message;
    fi_op_tagged tagged;
    fi_op_rma memory;
    fi_op_atomic atomic;
    fi_op_fetch_atomic fetch;
    fi_op_compare_atomic compare;
    fi_op_cntr counter;
  } call;
  iovec part;
  fi_rma_iov remote;
  fi_ioc operand;
  fi_ioc result;
  fi_ioc compared;
  fi_rma_ioc target;
};

namespace {

// Of the initial-exec model, as any other needs the loader's own library.
__attribute__((tls_model("initial-exec"))) thread_local constinit Deferred* issuing = nullptr;

bool keep_part(Deferred& work, const iovec*& parts, std::size_t count) {
  if (count > 1) return false;
  if (count == 1) work.part = *parts;
  parts = &work.part;
  return true;
}

bool keep_atomic(Deferred& work, fi_msg_atomic& message) {
  if (message.iov_count > 1 || message.rma_iov_count != 1) return false;
  if (message.iov_count == 1) work.operand = *message.msg_iov;
  work.target = *message.rma_iov;
  message.msg_iov = message.iov_count == 1 ? &work.operand : nullptr;
  message.rma_iov = &work.target;
  return true;
}

bool keep_result(Deferred& work, fi_msg_fetch& fetch) {
  if (fetch.iov_count != 1) return false;
  work.result = *fetch.msg_iov;
  fetch.msg_iov = &work.result;
  return true;
}

// False for work that cannot be deferred.
bool keep_call(Deferred& work, const fi_deferred_work& asked) {
  auto& call = work.call;
  switch (asked.op_type) {
    case FI_OP_SEND:
      call.message = *asked.op.msg;
      return (call.message.flags & FI_INJECT) == 0 &&
             keep_part(work, call.message.msg.msg_iov, call.message.msg.iov_count);
    case FI_OP_TSEND:
      call.tagged = *asked.op.tagged;
      return (call.tagged.flags & FI_INJECT) == 0 &&
             keep_part(work, call.tagged.msg.msg_iov, call.tagged.msg.iov_count);
    case FI_OP_READ:
    case FI_OP_WRITE:
      call.memory = *asked.op.rma;
      if (call.memory.msg.rma_iov_count != 1) return false;
      work.remote = *call.memory.msg.rma_iov;
      call.memory.msg.rma_iov = &work.remote;
      return keep_part(work, call.memory.msg.msg_iov, call.memory.msg.iov_count);
    case FI_OP_ATOMIC:
      call.atomic = *asked.op.atomic;
      return keep_atomic(work, call.atomic.msg);
    case FI_OP_FETCH_ATOMIC:
      call.fetch = *asked.op.fetch_atomic;
      return keep_atomic(work, call.fetch.msg) && keep_result(work, call.fetch.fetch);
    case FI_OP_COMPARE_ATOMIC:
      call.compare = *asked.op.compare_atomic;
      if (call.compare.compare.iov_count != 1) return false;
      work.compared = *call.compare.compare.msg_iov;
      call.compare.compare.msg_iov = &work.compared;
      return keep_atomic(work, call.compare.msg) && keep_result(work, call.compare.fetch);
    case FI_OP_CNTR_SET:
    case FI_OP_CNTR_ADD:
      call.counter = *asked.op.cntr;
      return call.counter.cntr != nullptr && asked.completion_cntr == nullptr;
    default:
      return false;
  }
}

ssize_t issue(Deferred& work) {
  auto& call = work.call;
  switch (work.type) {
    case FI_OP_SEND:
      return fi_sendmsg(call.message.ep, &call.message.msg, call.message.flags);
    case FI_OP_TSEND:
      return fi_tsendmsg(call.tagged.ep, &call.tagged.msg, call.tagged.flags);
    case FI_OP_READ:
      return fi_readmsg(call.memory.ep, &call.memory.msg, call.memory.flags);
    case FI_OP_WRITE:
      return fi_writemsg(call.memory.ep, &call.memory.msg, call.memory.flags);
    case FI_OP_ATOMIC:
      return fi_atomicmsg(call.atomic.ep, &call.atomic.msg, call.atomic.flags);
    case FI_OP_FETCH_ATOMIC:
      return fi_fetch_atomicmsg(call.fetch.ep, &call.fetch.msg, call.fetch.fetch.msg_iov, call.fetch.fetch.desc,
                                call.fetch.fetch.iov_count, call.fetch.flags);
    case FI_OP_COMPARE_ATOMIC:
      return fi_compare_atomicmsg(call.compare.ep, &call.compare.msg, call.compare.compare.msg_iov,
                                  call.compare.compare.desc, call.compare.compare.iov_count, call.compare.fetch.msg_iov,
                                  call.compare.fetch.desc, call.compare.fetch.iov_count, call.compare.flags);
    default:
      break;
  }
  const Session session;
  auto& counter = *object_of<Counter>(call.counter.cntr);
  counter.value = work.type == FI_OP_CNTR_SET ? call.counter.value : counter.value + call.counter.value;
  return 0;
}

bool is_due(const Deferred& work) { return work.trigger->value >= work.threshold; }

// Takes the oldest work that is due out of the list; nullptr if there is none.
Deferred* take_due(Process& state) {
  for (Deferred** link = &state.deferred; *link != nullptr; link = &(*link)->next) {
    Deferred* work = *link;
    if (!is_due(*work)) continue;
    *link = work->next;
    return work;
  }
  return nullptr;
}

void forget(Deferred* work) {
  --work->trigger->users;
  if (work->completion != nullptr) {
    --work->completion->users;
    work->completion->settle_one();
  }
  --work->domain->users;
  free(work);
}

// FI_CXI_ENABLE_TRIG_OP_LIMIT: one list entry of the service for each piece that waits; all of the service's are taken
// to be this process's.
bool has_room() {
  const Session session;
  if (!session.state().environment.limited_work) return true;
  std::size_t waiting = 0;
  for (const Deferred* work = session.state().deferred; work != nullptr; work = work->next) ++waiting;
  if (waiting < triggered_operations) return true;
  log("FI_QUEUE_WORK: Trig ops exhausted: in-use=%zu", waiting);
  return false;
}

int queue(Domain& domain, const fi_deferred_work* asked) {
  if (asked == nullptr || asked->triggering_cntr == nullptr) return -FI_EINVAL;
  if (!has_room()) return -FI_ENOSPC;
  auto* work = allocate<Deferred>();
  if (work == nullptr) return -FI_ENOMEM;
  if (!keep_call(*work, *asked)) {
    log("FI_QUEUE_WORK: operation %d cannot be deferred in this form", static_cast<int>(asked->op_type));
    free(work);
    return -FI_EINVAL;
  }
  work->name = asked;
  work->domain = &domain;
  work->type = asked->op_type;
  work->threshold = asked->threshold;
  work->trigger = object_of<Counter>(asked->triggering_cntr);
  work->completion = asked->completion_cntr != nullptr ? object_of<Counter>(asked->completion_cntr) : nullptr;
  const Session session;
  ++work->trigger->users;
  ++domain.users;
  if (work->completion != nullptr) {
    ++work->completion->users;
    ++work->completion->outstanding;  // who waits for it waits for something
  }
  Deferred** end = &session.state().deferred;
  while (*end != nullptr) end = &(*end)->next;
  *end = work;
  return 0;
}

// One piece of work by its name, or all of the domain.
int drop(const Domain& domain, const fi_deferred_work* name) {
  const Session session;
  bool found = name == nullptr;
  for (Deferred** link = &session.state().deferred; *link != nullptr;) {
    Deferred* work = *link;
    if (work->domain != &domain || (name != nullptr && work->name != name)) {
      link = &work->next;
      continue;
    }
    *link = work->next;
    forget(work);
    found = true;
  }
  return found ? 0 : -FI_ENOENT;
}

}  // namespace

Counter* counter_of_work() { return issuing != nullptr ? issuing->completion : nullptr; }

bool issues_work() { return issuing != nullptr; }

bool work_is_due(const Process& state) {
  for (const Deferred* work = state.deferred; work != nullptr; work = work->next) {
    if (is_due(*work)) return true;
  }
  return false;
}

void issue_deferred() {
  if (process().deferred == nullptr || issuing != nullptr) return;
  for (;;) {
    Deferred* work = nullptr;
    {
      const Session session;
      if (!session) return;
      work = take_due(session.state());
    }
    if (work == nullptr) return;
    issuing = work;
    const ssize_t error = issue(*work);
    issuing = nullptr;
    const Session session;
    if (error == -FI_EAGAIN) {
      work->next = session.state().deferred;
      session.state().deferred = work;
      return;
    }
    if (error != 0 && work->completion != nullptr) work->completion->count(static_cast<int>(-error));
    forget(work);
  }
}

int control_work(Domain& domain, int what, void* argument) {
  const auto* work = static_cast<const fi_deferred_work*>(argument);
  switch (what) {
    case FI_QUEUE_WORK: {
      const int error = queue(domain, work);
      if (error == 0) issue_deferred();  // its counter may be there already
      return error;
    }
    case FI_CANCEL_WORK:
      return work == nullptr ? -FI_EINVAL : drop(domain, work);
    case FI_FLUSH_WORK:
      return drop(domain, nullptr);
    default:
      return -FI_ENOSYS;  // domains know no other commands
  }
}

}  // namespace dryfly::provider
