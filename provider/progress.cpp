#include "provider/progress.hpp"

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "provider/cntr.hpp"
#include "provider/collective.hpp"
#include "provider/cq.hpp"
#include "provider/deferred.hpp"
#include "provider/device_memory.hpp"
#include "provider/ep.hpp"
#include "provider/group.hpp"
#include "provider/log.hpp"
#include "provider/mr.hpp"
#include "provider/peer.hpp"
#include "provider/streams.hpp"
#include "provider/work.hpp"
#include "rank/node_accounts.hpp"

namespace dryfly::provider {

namespace {

using wire::Event;
using wire::EventKind;

bool has_payload(const Event& event) {
  constexpr std::uint32_t payload =
      wire::event_flag::payload_inline | wire::event_flag::payload_arena | wire::event_flag::payload_memory;
  return (event.flags & payload) != 0;
}

// Releases the payload of an event that nobody wants any more: its end-point was closed, or it says so itself.
void discard_payload(rank::Channel& channel, const Event& event) {
  Event nothing = event;
  nothing.place_length = 0;
  if ((event.flags & wire::event_flag::dropped_free) != 0) nothing.flags = wire::event_flag::payload_arena;
  if ((nothing.flags & wire::event_flag::payload_inline) != 0 || !has_payload(nothing)) return;
  char nowhere = 0;
  channel.place(nothing, &nowhere);
}

void report(Process& state, Operation& operation, const Completion& completion) {
  if (operation.queue != nullptr && (operation.reported || completion.error != 0)) {
    operation.queue->put(completion);
    state.news.reported(operation.queue->outlet);
  }
  if (operation.counter != nullptr) {
    operation.counter->count(completion.error);
    state.news.reported(operation.counter->outlet);
  }
}

void finish(Process& state, Operation& operation) {
  if (operation.counter != nullptr) operation.counter->settle_one();
  if (operation.work != nullptr) settle_work(*operation.work);
  state.operations.remove(operation);
}

Completion completion_of(const Operation& operation, const Event& event, int error) {
  Completion completion{};
  completion.context = operation.context;
  completion.operation = event.context;
  completion.flags = operation.flags;
  completion.length = event.length;
  completion.error = error;
  if ((event.flags & wire::event_flag::has_data) != 0) {
    completion.flags |= FI_REMOTE_CQ_DATA;
    completion.data = event.data;
  }
  return completion;
}

void name_source(const Operation& operation, const Event& event, Completion& completion) {
  completion.sources = operation.endpoint->addresses;
  completion.source = event.peer;
}

// A message is in the buffer.
void received(Process& state, Operation& operation, const Event& event, int error) {
  Completion completion = completion_of(operation, event, error);
  name_source(operation, event, completion);
  completion.tag = event.tag;
  completion.block = operation.block;
  completion.by_software = (event.flags & wire::event_flag::matched_in_software) != 0;
  completion.buffer = operation.multi_receive ? reinterpret_cast<void*>(event.buffer) : operation.buffer;
  const bool truncated = event.length > event.place_length && (error == 0 || error == FI_ETRUNC);
  if (operation.discards) {
    completion.error = 0;
  } else if (truncated) {
    completion.error = FI_ETRUNC;
    completion.length = event.place_length;
    completion.missing_bytes = event.length - event.place_length;
  }
  if ((event.flags & wire::event_flag::to_copy) != 0 && !operation.discards) {
    const DeviceCopy way = way_to_device(state.environment, *operation.endpoint, completion.length);
    const bool is_read = operation.queue != nullptr && (operation.reported || completion.error != 0);
    if (is_read) {
      completion.copy = way;
    } else {
      copy_to_device(state.environment, way, completion.buffer, completion.length);
    }
  }
  const bool last = !operation.multi_receive || (event.flags & wire::event_flag::released) != 0;
  if (operation.multi_receive && last) completion.flags |= FI_MULTI_RECV;
  report(state, operation, completion);
  if (operation.entry != nullptr) operation.endpoint->shared->owner_calls->free_entry(operation.entry);
  if (last) finish(state, operation);
}

void peeked(Process& state, Operation& operation, const Event& event, int error) {
  if (operation.waits) {
    operation.queue->put(peer::arrival(operation, event, state.operations.id_of(operation)));
    state.news.reported(operation.queue->outlet);
    operation.kind = OperationKind::claim;
    return;
  }
  const bool found = (event.flags & wire::event_flag::found) != 0;
  Completion completion = completion_of(operation, event, error);
  completion.tag = event.tag;
  if (found) {
    name_source(operation, event, completion);
  } else if (error == 0) {
    completion.error = FI_ENOMSG;
  }
  report(state, operation, completion);
  if (found && operation.claims && completion.error == 0) {
    operation.kind = OperationKind::claim;
  } else {
    finish(state, operation);
  }
}

// The buffer of a multi-receive is used up, without a message that says so.
void released(Process& state, Operation& operation) {
  Completion completion{};
  completion.context = operation.context;
  completion.flags = FI_MULTI_RECV;
  report(state, operation, completion);
  finish(state, operation);
}

void failed(Process& state, Operation& operation, const Event& event, int error) {
  Completion completion = completion_of(operation, event, error);
  completion.buffer = operation.buffer;
  completion.tag = event.tag;
  report(state, operation, completion);
  finish(state, operation);
}

// A send, read, write or atomic.
void completed(Process& state, Operation& operation, const Event& event) {
  Completion completion = completion_of(operation, event, 0);
  completion.length = operation.length;
  report(state, operation, completion);
  finish(state, operation);
}

// A deferred count: the NIC has moved the counter.
void counted(Process& state, Operation& operation) {
  Counter& counter = *operation.counter;
  counter.value = operation.sets ? operation.length : counter.value + operation.length;
  state.news.reported(counter.outlet);
  finish(state, operation);
}

void reduced(Process& state, Operation& operation, const Event& event) {
  count_reduction(*operation.endpoint, event.group);
  Completion completion = completion_of(operation, event, 0);
  completion.length = 0;
  set_reduction_error(event, completion);
  report(state, operation, completion);
  finish(state, operation);
}

void handle(const Session& session, Operation& operation, const Event& event) {
  Process& state = session.state();
  int error = event.error;
  // A receive says where the bytes go; what a read or a fetch brings back goes where the call said.
  void* to = event.kind == EventKind::received ? reinterpret_cast<void*>(event.buffer) : operation.buffer;
  rank::Channel& channel = session.channel();
  if (event.place_length != 0 && channel.header().nodes_share_memory != 0 && gpu_of(to) == 0) {
    const wire::RankPage& page = rank::NodeAccounts::page_of(channel.header(), channel.rank());
    rank::NodeAccounts(channel.header(), page).moved_by_nic(channel.now(), event.place_length, true);
  }
  if (event.place_length != 0) channel.page().copier.placed.note(to, event.place_length);
  if (has_payload(event)) {
    const int placed = channel.place(event, to);
    if (placed != 0 && error == 0) error = placed;
  }
  if ((event.flags & wire::event_flag::no_completion) != 0) return;
  switch (event.kind) {
    case EventKind::received:
      return received(state, operation, event, error);
    case EventKind::peeked:
      return peeked(state, operation, event, error);
    case EventKind::buffer_released:
      return released(state, operation);
    case EventKind::cancelled:
      return failed(state, operation, event, FI_ECANCELED);
    case EventKind::work:
    case EventKind::head_to_copy:
      return;  // a queue has them
    case EventKind::accessed:
    case EventKind::written:
      return;  // belongs to a region
    case EventKind::memory_changed:
    case EventKind::joined:
      return;  // belong to no operation
    case EventKind::reduced:
      return reduced(state, operation, event);
    case EventKind::counted:
      return counted(state, operation);
    case EventKind::sent:
    case EventKind::rma_done:
      if (error != 0) return failed(state, operation, event, error);
      return completed(state, operation, event);
  }
}

// A send that nobody waits for, an injected one, has failed: its end-point's queue says so, without a context.
void failed_unseen(Process& state, const Event& event) {
  Endpoint* endpoint = event.endpoint < wire::endpoint_count_max ? state.endpoints[event.endpoint] : nullptr;
  CompletionQueue* queue = endpoint == nullptr ? nullptr : endpoint->transmit.queue;
  if (queue == nullptr || !queue->reserve()) return;
  Completion completion{};
  completion.flags = FI_SEND;
  completion.length = event.length;
  completion.error = event.error;
  queue->put(completion);
  state.news.reported(queue->outlet);
}

}  // namespace

bool progress(const Session& session) {
  rank::Channel& channel = session.channel();
  bool reported = false;
  channel.renew_baton();
  if (session.state().extended_counters != nullptr) [[unlikely]]
    look_at_doorbells(session);
  while (const Event* event = channel.peek()) {
    Operation* operation = session.state().operations.find(event->context);
    if (event->kind == EventKind::work || (event->kind == EventKind::head_to_copy && operation != nullptr)) {
      reported |= accept_work(session, *event);
    } else if (event->kind == EventKind::joined) {
      reported |= accept_joined(session, *event);
    } else if (event->kind == EventKind::accessed) {
      reported |= count_access(session.state(), *event);
    } else if (event->kind == EventKind::written) {
      if (!report_write(session.state(), *event, reported)) break;
    } else if (operation == nullptr || (event->flags & wire::event_flag::dropped_free) != 0) {
      discard_payload(channel, *event);
      if (event->kind == EventKind::memory_changed) channel.polls().begin_free_polls();
      if (operation == nullptr && event->kind == EventKind::sent && event->error != 0) {
        failed_unseen(session.state(), *event);
        reported = true;
      }
    } else {
      // Without memory the event stays where it is, for the next call.
      if (operation->queue != nullptr && !operation->queue->reserve()) break;
      if (event->error != 0) log("operation of end-point %u failed: error %d", event->endpoint, event->error);
      const std::uint64_t before_ps = channel.now();
      handle(session, *operation, *event);
      reported = true;
      // Time went by, so what is visible by now is another poll's to find.
      if (channel.now() != before_ps) {
        channel.pop();
        break;
      }
    }
    channel.pop();
  }
  return reported;
}

void take_all_visible(const Session& session) {
  session.channel().polls().settle();
  progress(session);
}

bool empty_poll(const Session& session, bool reported) {
  rank::Channel& channel = session.channel();
  const bool waits = !channel.polls().must_not_wait();
  if (!waits) {
    channel.polls().settle();
    if (progress(session)) return false;
  }
  if (reported || !session.state().news.may_wait()) return waits;
  if (!channel.polls().idle()) return false;
  progress(session);
  return true;
}

}  // namespace dryfly::provider
