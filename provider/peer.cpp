#include "provider/peer.hpp"

#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include "provider/device_memory.hpp"
#include "provider/log.hpp"
#include "provider/memory.hpp"
#include "provider/operation_record.hpp"
#include "provider/transfer.hpp"
#include "provider/unsupported.hpp"

namespace dryfly::provider::peer {

namespace {

using wire::CommandKind;
namespace command_flag = wire::command_flag;

// Arrivals that can be told before the rank polls; further messages wait in the NIC and keep their order.
constexpr int watches = 64;

struct Holder {
  fid_ep fid;
  SharedReceive* shared;
};

int close_holder(fid* fid) {
  free(object_of<Holder>(fid));
  return 0;
}

fi_ops holder_calls = {
    .size = sizeof(fi_ops),
    .close = close_holder,
    .bind = unsupported,
    .control = unsupported,
    .ops_open = unsupported,
};

int watch(const Session& session, Endpoint& endpoint) {
  const Completing completing{.bound = endpoint.receive,
                              .counter = nullptr,
                              .call_flags = 0,
                              .completion_flags = FI_RECV | FI_TAGGED,
                              .context = nullptr,
                              .silent = false};
  Operation* operation = begin_operation(session.state(), endpoint, OperationKind::peek, completing);
  if (operation == nullptr) return -FI_ENOMEM;
  operation->waits = true;
  auto command = endpoint.command(CommandKind::tagged_peek);
  command.flags = command_flag::any_source | command_flag::claim | command_flag::waits;
  command.ignore = ~std::uint64_t{0};
  command.context = session.state().operations.id_of(*operation);
  session.channel().push(command, nullptr);
  return 0;
}

// Takes the message that `claim` has reserved into the entry's buffer.
int take(const Session& session, Operation& claim, Entry& entry) {
  Endpoint& endpoint = *claim.endpoint;
  const Completing completing{.bound = endpoint.receive,
                              .counter = endpoint.receives,
                              .call_flags = entry.flags,
                              .completion_flags = FI_RECV | FI_TAGGED,
                              .context = entry.context,
                              .silent = false};
  Operations& operations = session.state().operations;
  Operation* operation = begin_operation(session.state(), endpoint, OperationKind::receive, completing);
  if (operation == nullptr) return -FI_ENOMEM;
  auto command = endpoint.command(CommandKind::receive_claimed);
  command.claim = operations.id_of(claim);
  command.context = operations.id_of(*operation);
  operation->entry = &entry;
  if (entry.count != 0) {
    operation->buffer = entry.parts[0].iov_base;
    operation->length = entry.parts[0].iov_len;
    command.buffer = reinterpret_cast<std::uint64_t>(operation->buffer);
    command.length = operation->length;
    name_buffer(endpoint, operation->buffer, command);
  }
  operations.remove(claim);
  command.pages = register_buffer(session, *endpoint.domain, operation->buffer, operation->length);
  charge_look_at_buffer(session.channel(), command.gpu != 0, command.length);
  check_mapping(session, *endpoint.domain, command.gpu != 0);
  session.channel().charge(session.channel().header().costs.receive_ps);
  session.channel().push(command, nullptr);
  record_command(session.channel(), command);
  return 0;
}

Operation& claim_of(const Entry& entry) { return *static_cast<Operation*>(entry.peer_context); }

int start_tagged(Entry* entry) {
  const Session session;
  if (!session) return -FI_EOPBADSTATE;
  return take(session, claim_of(*entry), *entry);
}

// The message goes into a buffer of no bytes, and nobody hears of it: the owner reports the discard itself.
int discard_tagged(Entry* entry) {
  const Session session;
  if (!session) return -FI_EOPBADSTATE;
  Operation& claim = claim_of(*entry);
  Operations& operations = session.state().operations;
  const Completing completing{.bound = claim.endpoint->receive,
                              .counter = nullptr,
                              .call_flags = 0,
                              .completion_flags = FI_RECV | FI_TAGGED,
                              .context = nullptr,
                              .silent = true};
  Operation* operation = begin_operation(session.state(), *claim.endpoint, OperationKind::receive, completing);
  if (operation == nullptr) return -FI_ENOMEM;
  operation->discards = true;
  auto command = claim.endpoint->command(CommandKind::receive_claimed);
  command.claim = operations.id_of(claim);
  command.context = operations.id_of(*operation);
  operations.remove(claim);
  session.channel().push(command, nullptr);
  return 0;
}

// lnx never asks: it links tagged messages only.
int untagged(Entry*) { return -FI_ENOSYS; }

ReceivePeerCalls calls_of_ours = {
    .size = sizeof(ReceivePeerCalls),
    .start_untagged = untagged,
    .start_tagged = start_tagged,
    .discard_untagged = untagged,
    .discard_tagged = discard_tagged,
};

fi_addr_t source_of(Entry* entry) {
  const Operation& claim = claim_of(*entry);
  const fi_addr_t name = claim.endpoint->addresses->reverse(claim.source);
  return name == FI_ADDR_NOTAVAIL ? FI_ADDR_UNSPEC : name;
}

}  // namespace

int open_shared_receive(fid_domain*, fi_rx_attr* attributes, fid_ep** fid, void* context) {
  if (attributes == nullptr || (attributes->op_flags & FI_PEER) == 0) {
    return -FI_ENOSYS;  // a shared context of its own the machine's provider has not either
  }
  SharedReceive* shared = static_cast<ReceiveContext*>(context)->shared;
  if (shared->owner_calls->size < sizeof(ReceiveOwnerCalls)) {
    log("fi_srx_context: the peer interface of libfabric 1 is not offered");
    return -FI_ENOSYS;  // its structures are laid out differently, and no MPI library that we run has it
  }
  auto* holder = allocate<Holder>();
  if (holder == nullptr) return -FI_ENOMEM;
  holder->fid.fid.fclass = FI_CLASS_SRX_CTX;
  holder->fid.fid.context = context;
  holder->fid.fid.ops = &holder_calls;
  holder->shared = shared;
  shared->peer_calls = &calls_of_ours;
  *fid = &holder->fid;
  return 0;
}

int bind_shared_receive(Endpoint& endpoint, const fid& what) {
  if (endpoint.shared != nullptr || endpoint.receive.queue == nullptr) return -FI_EINVAL;
  endpoint.shared = reinterpret_cast<const Holder*>(&what)->shared;
  return 0;
}

int watch_arrivals(const Session& session, Endpoint& endpoint) {
  for (int i = 0; i < watches; ++i) {
    if (const int error = watch(session, endpoint); error != 0) return error;
  }
  return 0;
}

Completion arrival(const Operation& watch, const wire::Event& event, OperationId id) {
  Completion completion{};
  completion.arrived = id;
  completion.flags = watch.flags;
  if ((event.flags & wire::event_flag::has_data) != 0) {
    completion.flags |= FI_REMOTE_CQ_DATA;
    completion.data = event.data;
  }
  completion.length = event.length;
  completion.tag = event.tag;
  completion.sources = watch.endpoint->addresses;
  completion.source = event.peer;
  return completion;
}

void meet(const Session& session, const Completion& arrival) {
  Operation* claim = session.state().operations.find(arrival.arrived);
  if (claim == nullptr) return;  // its end-point was closed
  Endpoint& endpoint = *claim->endpoint;
  if (watch(session, endpoint) != 0) log("no memory to watch for arrivals");
  claim->source = arrival.source;
  session.channel().charge(session.channel().header().costs.match_ps);
  const fi_addr_t name = arrival.sources->reverse(arrival.source);
  Match match{
      .source = name == FI_ADDR_NOTAVAIL ? FI_ADDR_UNSPEC : name, .message_bytes = arrival.length, .tag = arrival.tag};
  Entry* entry = nullptr;
  const int found = endpoint.shared->owner_calls->get_tagged(endpoint.shared, &match, &entry);
  if (found != 0 && found != -FI_ENOENT) {
    log("the linking provider cannot take a message: error %d", found);
    return;
  }
  entry->peer_context = claim;
  if ((arrival.flags & FI_REMOTE_CQ_DATA) != 0) {
    entry->flags |= FI_REMOTE_CQ_DATA;
    entry->data = arrival.data;
  }
  if (found == 0) {
    if (take(session, *claim, *entry) != 0) log("no memory to take a message");
  } else {
    endpoint.shared->owner_calls->queue_tagged(entry);
  }
}

void pass_on(const CompletionQueue& queue, const Completion& completion) {
  if (completion.error == 0) {
    const fi_addr_t source = completion.sources != nullptr ? completion.sources->reverse(completion.source)
                                                           : static_cast<fi_addr_t>(FI_ADDR_NOTAVAIL);
    queue.owner->owner_calls->write(queue.owner, completion.context, completion.flags, completion.length,
                                    completion.buffer, completion.data, completion.tag, source);
    return;
  }
  // The owner copies a structure of its own libfabric, which is the longer one.
  struct {
    fi_cq_err_entry entry;
    char rest[64];
  } error{};
  error.entry.op_context = completion.context;
  error.entry.flags = completion.flags;
  error.entry.len = completion.length;
  error.entry.buf = completion.buffer;
  error.entry.data = completion.data;
  error.entry.tag = completion.tag;
  error.entry.olen = completion.missing_bytes;
  error.entry.err = completion.error;
  error.entry.prov_errno = completion.error;
  queue.owner->owner_calls->write_error(queue.owner, &error.entry);
}

void name_sources(const AddressVector& addresses) {
  for (Endpoint* endpoint : process().endpoints) {
    if (endpoint == nullptr || endpoint->shared == nullptr || endpoint->addresses != &addresses) continue;
    endpoint->shared->owner_calls->for_each_unknown_source(endpoint->shared, source_of);
  }
}

}  // namespace dryfly::provider::peer
