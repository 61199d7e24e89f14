#include "provider/eq.hpp"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "provider/deadline.hpp"
#include "provider/fabric.hpp"
#include "provider/memory.hpp"
#include "provider/process.hpp"
#include "provider/unsupported.hpp"

namespace dryfly::provider {

namespace {

// One event that the application has written.
struct WrittenEvent {
  WrittenEvent* next;
  std::uint32_t event;
  std::size_t length;
  fi_eq_cm_entry content;  // of `length` bytes
};

struct EventQueue {
  fid_eq fid;
  Fabric* fabric;
  fi_wait_obj wait;
  WrittenEvent* first;
  WrittenEvent* last;
};

void drop_first(EventQueue& queue) {
  WrittenEvent* event = queue.first;
  queue.first = event->next;
  if (queue.first == nullptr) queue.last = nullptr;
  free(event);
}

int close_event_queue(fid* fid) {
  const Session session;
  auto* queue = object_of<EventQueue>(fid);
  while (queue->first != nullptr) drop_first(*queue);
  --queue->fabric->users;
  free(queue);
  return 0;
}

ssize_t take(EventQueue& queue, std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags) {
  if (queue.first == nullptr) return -FI_EAGAIN;
  if (queue.first->length > length) return -FI_ETOOSMALL;
  *event = queue.first->event;
  const std::size_t taken = queue.first->length;
  memcpy(buffer, &queue.first->content, taken);
  if ((flags & FI_PEEK) == 0) drop_first(queue);
  return static_cast<ssize_t>(taken);
}

ssize_t read(fid_eq* fid, std::uint32_t* event, void* buffer, std::size_t length, std::uint64_t flags) {
  const Session session;
  return take(*object_of<EventQueue>(fid), event, buffer, length, flags);
}

ssize_t read_error(fid_eq*, fi_eq_err_entry*, std::uint64_t) { return -FI_EAGAIN; }

ssize_t write(fid_eq* fid, std::uint32_t event, const void* buffer, std::size_t length, std::uint64_t) {
  auto* written = static_cast<WrittenEvent*>(calloc(1, sizeof(WrittenEvent) + length));
  if (written == nullptr) return -FI_ENOMEM;
  written->event = event;
  written->length = length;
  memcpy(&written->content, buffer, length);
  const Session session;
  auto* queue = object_of<EventQueue>(fid);
  (queue->last != nullptr ? queue->last->next : queue->first) = written;
  queue->last = written;
  return static_cast<ssize_t>(length);
}

ssize_t wait_and_read(fid_eq* fid, std::uint32_t* event, void* buffer, std::size_t length, int timeout_ms,
                      std::uint64_t flags) {
  if (object_of<EventQueue>(fid)->wait == FI_WAIT_NONE) return -FI_ENOSYS;
  Deadline deadline(timeout_ms);
  for (;;) {
    const Session session;
    if (!session) return -FI_EOPBADSTATE;
    const ssize_t got = take(*object_of<EventQueue>(fid), event, buffer, length, flags);
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
