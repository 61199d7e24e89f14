#include "provider/eq.hpp"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "provider/deadline.hpp"
#include "provider/fabric.hpp"
#include "provider/memory.hpp"
#include "provider/process.hpp"
#include "provider/progress.hpp"
#include "provider/unsupported.hpp"

namespace dryfly::provider {

struct StoredEvent {
  StoredEvent* next;
  std::uint32_t event;
  bool is_error;
  std::size_t length;
  fi_eq_cm_entry content;  // of `length` bytes
};

namespace {

void drop_first(EventQueue& queue) {
  StoredEvent* event = queue.first;
  if (queue.outlet.fresh != 0) process().news.seen(queue.outlet, queue.outlet.fresh - 1);
  queue.first = event->next;
  if (queue.first == nullptr) queue.last = nullptr;
  free(event);
}

int close_event_queue(fid* fid) {
  const Session session;
  auto* queue = object_of<EventQueue>(fid);
  if (queue->users != 0) return -FI_EBUSY;
  if (queue->is_outlet) session.state().news.remove(queue->outlet);
  while (queue->first != nullptr) drop_first(*queue);
  --queue->fabric->users;
  free(queue);
  return 0;
}

bool append(EventQueue& queue, std::uint32_t event, const void* content, std::size_t length, bool is_error) {
  auto* stored = static_cast<StoredEvent*>(calloc(1, sizeof(StoredEvent) + length));
  if (stored == nullptr) return false;
  stored->event = event;
  stored->is_error = is_error;
  stored->length = length;
  memcpy(&stored->content, content, length);
  (queue.last != nullptr ? queue.last->next : queue.first) = stored;
  queue.last = stored;
  return true;
}

ssize_t take(EventQueue& queue, std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags) {
  if (queue.first == nullptr) return -FI_EAGAIN;
  if (queue.first->is_error) return -FI_EAVAIL;
  if (queue.first->length > length) return -FI_ETOOSMALL;
  *event = queue.first->event;
  const std::size_t taken = queue.first->length;
  memcpy(buffer, &queue.first->content, taken);
  if ((flags & FI_PEEK) == 0) drop_first(queue);
  return static_cast<ssize_t>(taken);
}

ssize_t read(fid_eq* fid, std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags) {
  const Session session;
  auto& queue = *object_of<EventQueue>(fid);
  if (queue.users == 0 || !session) return take(queue, event, buffer, length, flags);
  // Reports of end-points come in here.
  if (session.channel().polls().take_free_poll()) return -FI_EAGAIN;
  look(session, [&] { return queue.first != nullptr; });
  const ssize_t got = take(queue, event, buffer, length, flags);
  if (got > 0) session.channel().charge(session.channel().header().costs.completion_ps);
  return got;
}

ssize_t read_error(fid_eq* fid, fi_eq_err_entry* entry, std::uint64_t flags) {
  const Session session;
  auto& queue = *object_of<EventQueue>(fid);
  if (queue.first == nullptr || !queue.first->is_error) return -FI_EAGAIN;
  fi_eq_err_entry stored;
  memcpy(&stored, &queue.first->content, sizeof stored);
  // What the caller has room for in err_data stays as it is: there is none.
  stored.err_data = entry->err_data;
  stored.err_data_size = 0;
  *entry = stored;
  if ((flags & FI_PEEK) == 0) drop_first(queue);
  return sizeof stored;
}

ssize_t write(fid_eq* fid, std::uint32_t event, const void* buffer, std::size_t length, std::uint64_t) {
  const Session session;
  const bool stored = append(*object_of<EventQueue>(fid), event, buffer, length, false);
  return stored ? static_cast<ssize_t>(length) : -FI_ENOMEM;
}

ssize_t wait_and_read(fid_eq* fid, std::uint32_t* event, void* buffer, std::size_t length, int timeout_ms,
                      std::uint64_t flags) {
  // Opened without a wait object: libfabric's cxi provider refuses to wait for it, too.
  if (object_of<EventQueue>(fid)->wait == FI_WAIT_NONE) return -FI_ENOSYS;
  Deadline deadline(timeout_ms);
  for (;;) {
    const Session session;
    if (!session) return -FI_EOPBADSTATE;
    auto& queue = *object_of<EventQueue>(fid);
    if (queue.users != 0) progress(session);
    const ssize_t got = take(queue, event, buffer, length, flags);
    if (got != -FI_EAGAIN || deadline.passed(session)) return got;
    deadline.wait(session);
  }
}

const char* error_text(fid_eq*, int error, const void*, char* buffer, std::size_t length) {
  const char* text = strerror(error);
  if (buffer != nullptr && length != 0) {
    strncpy(buffer, text, length - 1);
    buffer[length - 1] = 0;
  }
  return text;
}

int control(fid* fid, int command, void* argument) {
  if (command != FI_GETWAITOBJ) return -FI_ENOSYS;
  *static_cast<fi_wait_obj*>(argument) = object_of<EventQueue>(fid)->wait;
  return 0;
}

fi_ops object_calls = {
    .size = sizeof(fi_ops),
    .close = close_event_queue,
    .bind = unsupported,
    .control = control,
    .ops_open = unsupported,
};

fi_ops_eq queue_calls = {
    .size = sizeof(fi_ops_eq),
    .read = read,
    .readerr = read_error,
    .write = write,
    .sread = wait_and_read,
    .strerror = error_text,
};

}  // namespace

void put_event(Process& state, EventQueue& queue, std::uint32_t event, const fi_eq_err_entry& entry, bool is_error) {
  // Without memory the event is lost.
  append(queue, event, &entry, is_error ? sizeof(fi_eq_err_entry) : sizeof(fi_eq_entry), is_error);
  if (!queue.is_outlet) state.news.add(queue.outlet);
  queue.is_outlet = true;
  state.news.reported(queue.outlet);
}

int open_event_queue(fid_fabric* fid, fi_eq_attr* attributes, fid_eq** queue_fid, void* context) {
  if (attributes != nullptr && !wait_object_accepted(attributes->wait_obj)) return -FI_ENOSYS;
  auto* queue = allocate<EventQueue>();
  if (queue == nullptr) return -FI_ENOMEM;
  queue->fid.fid.fclass = FI_CLASS_EQ;
  queue->fid.fid.context = context;
  queue->fid.fid.ops = &object_calls;
  queue->fid.ops = &queue_calls;
  queue->fabric = object_of<Fabric>(fid);
  queue->wait = attributes != nullptr ? attributes->wait_obj : FI_WAIT_NONE;
  if (queue->wait == FI_WAIT_UNSPEC) queue->wait = FI_WAIT_YIELD;
  const Session session;
  ++queue->fabric->users;
  *queue_fid = &queue->fid;
  return 0;
}

}  // namespace dryfly::provider
