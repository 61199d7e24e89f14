#include "provider/cq.hpp"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "provider/deadline.hpp"
#include "provider/log.hpp"
#include "provider/memory.hpp"
#include "provider/operation_record.hpp"
#include "provider/peer.hpp"
#include "provider/process.hpp"
#include "provider/progress.hpp"
#include "provider/unsupported.hpp"
#include "provider/work.hpp"

namespace dryfly::provider {

namespace {

std::size_t entry_bytes(fi_cq_format format) {
  switch (format) {
    case FI_CQ_FORMAT_MSG:
      return sizeof(fi_cq_msg_entry);
    case FI_CQ_FORMAT_DATA:
      return sizeof(fi_cq_data_entry);
    case FI_CQ_FORMAT_TAGGED:
      return sizeof(fi_cq_tagged_entry);
    default:
      return sizeof(fi_cq_entry);
  }
}

// Each format is a prefix of the longest.
void write_entry(const Completion& completion, fi_cq_format format, void* to) {
  const fi_cq_tagged_entry entry{completion.context, completion.flags, completion.length,
                                 completion.buffer,  completion.data,  completion.tag};
  memcpy(to, &entry, entry_bytes(format));
}

void take_one(CompletionQueue& queue) {
  DRYFLY_CHECK(queue.size() != 0);
  ++queue.tail;
  process().news.seen(queue.outlet, queue.size());
}

rank::Boundary what_it_is(const Completion& completion) {
  if ((completion.flags & FI_RECV) != 0) return rank::Boundary::arrived;
  return (completion.flags & FI_SEND) != 0 ? rank::Boundary::sent : rank::Boundary::done;
}

std::uint64_t cost_of(const Completion& completion, const wire::HostCosts& costs) {
  switch (what_it_is(completion)) {
    case rank::Boundary::arrived:
      return costs.received_ps + (completion.by_software ? costs.match_ps : 0);
    case rank::Boundary::sent:
      return costs.sent_ps;
    default:
      return costs.completion_ps;
  }
}

// What a message's bytes that lie in the provider's memory take to their device is part of reading its completion.
void bring_to_device(const Session& session, const Completion& completion) {
  copy_to_device(session.state().environment, completion.copy, completion.buffer, completion.length);
}

// At most one entry a call, however many the caller has room for: how many are here already depends on how far the
// simulator happens to be, and the caller would act on several before it pays for the next.
// Entries in front of an error come first; the error then has to be fetched with fi_cq_readerr.
ssize_t take(const Session& session, CompletionQueue& queue, void* buffer, std::size_t count, fi_addr_t* sources) {
  if (queue.size() == 0) return -FI_EAGAIN;
  const Completion& completion = queue.ring[queue.tail & (queue.capacity - 1)];
  if (completion.error != 0) return -FI_EAVAIL;
  if (completion.is_work) {
    const Completion work = completion;
    take_one(queue);
    do_work(session, work);
    return -FI_EAGAIN;
  }
  if (count == 0) return 0;
  const std::uint64_t cost_ps = cost_of(completion, session.channel().header().costs);
  write_entry(completion, queue.format, static_cast<char*>(buffer));
  if (sources != nullptr) {
    sources[0] = completion.sources != nullptr ? completion.sources->reverse(completion.source)
                                               : static_cast<fi_addr_t>(FI_ADDR_NOTAVAIL);
  }
  record_completion(session.channel(), completion);
  session.channel().found(what_it_is(completion), completion.length, completion.block);
  bring_to_device(session, completion);
  take_one(queue);
  session.channel().polls().took();
  session.channel().charge(cost_ps);
  return 1;
}

// For a queue with an owner: what it gets goes there, and nothing to the caller, which is the owner.
ssize_t pass_on_one(const Session& session, CompletionQueue& queue) {
  if (queue.size() == 0) return -FI_EAGAIN;
  const Completion completion = queue.ring[queue.tail & (queue.capacity - 1)];
  take_one(queue);
  if (completion.is_work) {
    do_work(session, completion);
    return -FI_EAGAIN;
  }
  // What has only come is no completion: its receive will be.
  if (completion.arrived == 0) record_completion(session.channel(), completion);
  session.channel().polls().took();
  bring_to_device(session, completion);
  session.channel().charge(completion.arrived != 0 ? session.channel().header().costs.received_ps
                                                   : cost_of(completion, session.channel().header().costs));
  if (completion.arrived != 0) {
    peer::meet(session, completion);
  } else {
    peer::pass_on(queue, completion);
  }
  return -FI_EAGAIN;
}

ssize_t read_from(fid_cq* fid, void* buffer, std::size_t count, fi_addr_t* sources) {
  const Session session;
  if (!session) return -FI_EOPBADSTATE;
  auto& queue = *object_of<CompletionQueue>(fid);
  if (queue.one != &queue) return -FI_EAGAIN;
  session.channel().boundary(rank::Boundary::poll, 0);
  if (session.channel().polls().take_free_poll()) return -FI_EAGAIN;
  look(session, [&] { return queue.size() != 0; });
  if (queue.owner != nullptr) return pass_on_one(session, queue);
  return take(session, queue, buffer, count, sources);
}

ssize_t read(fid_cq* fid, void* buffer, std::size_t count) { return read_from(fid, buffer, count, nullptr); }

ssize_t read_error(fid_cq* fid, fi_cq_err_entry* entry, std::uint64_t) {
  const Session session;
  if (!session) return -FI_EOPBADSTATE;
  auto& queue = *object_of<CompletionQueue>(fid);
  if (queue.size() == 0) return -FI_EAGAIN;
  const Completion& completion = queue.ring[queue.tail & (queue.capacity - 1)];
  if (completion.error == 0) return -FI_EAGAIN;
  // Field by field: the structure is longer in libfabric 2, and the caller's may be the shorter one.
  entry->op_context = completion.context;
  entry->flags = completion.flags;
  entry->len = completion.length;
  entry->buf = completion.buffer;
  entry->data = completion.data;
  entry->tag = completion.tag;
  entry->olen = completion.missing_bytes;
  entry->err = completion.error;
  entry->prov_errno = completion.provider_error != 0 ? completion.provider_error : completion.error;
  entry->err_data_size = 0;
  bring_to_device(session, completion);
  take_one(queue);
  session.channel().polls().took();
  session.channel().charge(session.channel().header().costs.completion_ps);
  return 1;
}

ssize_t wait_and_read_from(fid_cq* fid, void* buffer, std::size_t count, fi_addr_t* sources, const void*,
                           int timeout_ms) {
  auto& queue = *object_of<CompletionQueue>(fid);
  if (queue.wait.kind == FI_WAIT_NONE) return -FI_EINVAL;
  Deadline deadline(timeout_ms);
  for (;;) {
    const Session session;
    if (!session) return -FI_EOPBADSTATE;
    progress(session);
    const ssize_t got = take(session, queue, buffer, count, sources);
    if (got != -FI_EAGAIN || deadline.passed(session)) return got;
    if (queue.size() == 0) deadline.wait(session);
  }
}

ssize_t wait_and_read(fid_cq* fid, void* buffer, std::size_t count, const void* condition, int timeout_ms) {
  return wait_and_read_from(fid, buffer, count, nullptr, condition, timeout_ms);
}

const char* error_text(fid_cq*, int error, const void*, char* buffer, std::size_t length) {
  // libfabric's own numbers begin at FI_ERRNO_OFFSET; the others are errno's.
  const char* text = "an error of libfabric, see rdma/fi_errno.h";
  if (error < FI_ERRNO_OFFSET) text = strerror(error);
  if (error == FI_ETRUNC) text = "the message was longer than the buffer";
  if (buffer != nullptr && length != 0) {
    strncpy(buffer, text, length - 1);
    buffer[length - 1] = 0;
  }
  return text;
}

void remove_from_list(CompletionQueue*& list, const CompletionQueue& queue) {
  CompletionQueue** place = &list;
  while (*place != &queue) place = &(*place)->next;
  *place = queue.next;
}

// The queue of this owner that was opened first, or the new one itself.
void join_owner(Process& state, CompletionQueue& queue, peer::Queue* owner) {
  queue.owner = owner;
  for (CompletionQueue* other = state.owned_queues; other != nullptr; other = other->next) {
    if (other->owner == owner) queue.one = other->one;
  }
  queue.next = state.owned_queues;
  state.owned_queues = &queue;
}

int close_completion_queue(fid* fid) {
  const Session session;
  auto* queue = object_of<CompletionQueue>(fid);
  if (queue->users != 0) return -FI_EBUSY;
  if (queue->owner != nullptr) remove_from_list(session.state().owned_queues, *queue);
  if (queue->one == queue) session.state().news.remove(queue->outlet);
  --queue->domain->users;
  close_wait_object(queue->wait);
  free(queue->ring);
  free(queue);
  return 0;
}

int control(fid* fid, int command, void* argument) {
  return control_wait_object(object_of<CompletionQueue>(fid)->wait, command, argument);
}

fi_ops object_calls = {
    .size = sizeof(fi_ops),
    .close = close_completion_queue,
    .bind = unsupported,
    .control = control,
    .ops_open = unsupported,
};

fi_ops_cq queue_calls = {
    .size = sizeof(fi_ops_cq),
    .read = read,
    .readfrom = read_from,
    .readerr = read_error,
    .sread = wait_and_read,
    .sreadfrom = wait_and_read_from,
    .signal = unsupported,
    .strerror = error_text,
};

}  // namespace

bool CompletionQueue::reserve() {
  if (size() < capacity) return true;
  constexpr std::uint64_t smallest = 64;
  const std::uint64_t larger_capacity = std::max(capacity * 2, smallest);
  auto* larger = allocate<Completion>(larger_capacity);
  if (larger == nullptr) return false;
  for (std::uint64_t i = tail; i != head; ++i) larger[i & (larger_capacity - 1)] = ring[i & (capacity - 1)];
  free(ring);
  ring = larger;
  capacity = larger_capacity;
  return true;
}

int open_completion_queue(fid_domain* domain, fi_cq_attr* attributes, fid_cq** fid, void* context) {
  WaitObject wait{};
  if (const int error = open_wait_object(attributes != nullptr ? attributes->wait_obj : FI_WAIT_NONE, wait)) {
    log("fi_cq_open: wait object %d is not offered", static_cast<int>(attributes->wait_obj));
    return error;
  }
  auto* queue = allocate<CompletionQueue>();
  if (queue == nullptr || !queue->reserve()) {
    close_wait_object(wait);
    free(queue);
    return -FI_ENOMEM;
  }
  queue->wait = wait;
  queue->fid.fid.fclass = FI_CLASS_CQ;
  queue->fid.fid.context = context;
  queue->fid.fid.ops = &object_calls;
  queue->fid.ops = &queue_calls;
  queue->domain = object_of<Domain>(domain);
  queue->format = FI_CQ_FORMAT_CONTEXT;
  if (attributes != nullptr && attributes->format != FI_CQ_FORMAT_UNSPEC) queue->format = attributes->format;
  queue->one = queue;
  const Session session;
  queue->size_asked = session.state().environment.queue_size;
  if (attributes != nullptr && attributes->size != 0) queue->size_asked = attributes->size;
  ++queue->domain->users;
  if (attributes != nullptr && (attributes->flags & FI_PEER) != 0) {
    join_owner(session.state(), *queue, static_cast<peer::QueueContext*>(context)->queue);
  }
  if (queue->one == queue) session.state().news.add(queue->outlet);
  *fid = &queue->fid;
  return 0;
}

}  // namespace dryfly::provider
