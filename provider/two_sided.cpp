#include "provider/two_sided.hpp"

#include <rdma/fi_errno.h>

#include "provider/attributes.hpp"
#include "provider/device_memory.hpp"
#include "provider/log.hpp"
#include "provider/operation_record.hpp"
#include "provider/process.hpp"
#include "provider/service.hpp"
#include "provider/transfer.hpp"
#include "rank/node_accounts.hpp"

namespace dryfly::provider {

namespace {

using wire::CommandKind;
namespace command_flag = wire::command_flag;

constexpr std::uint64_t known_send_flags = transmit_flags | FI_REMOTE_CQ_DATA | FI_MORE;
// Of these a receive says nothing, and the machine's provider lets them pass (prov/cxi: CXIP_RX_IGNORE_OP_FLAGS).
constexpr std::uint64_t ignored_receive_flags = FI_REMOTE_CQ_DATA | FI_INJECT;
constexpr std::uint64_t known_receive_flags =
    receive_flags | FI_MORE | FI_PEEK | FI_CLAIM | FI_DISCARD | ignored_receive_flags;

ssize_t bad_flags(const char* call, std::uint64_t flags) {
  log("%s: flags 0x%llx are not offered", call, static_cast<unsigned long long>(flags));
  return -FI_EBADFLAGS;
}

std::uint64_t kind_flag(bool tagged) { return tagged ? FI_TAGGED : FI_MSG; }

// Common to posts and peeks: whom and what to match. 0 or an error.
ssize_t fill_match(const Endpoint& endpoint, const ReceiveCall& call, wire::Command& command) {
  const bool directed = (endpoint.capabilities & FI_DIRECTED_RECV) != 0 && call.source != FI_ADDR_UNSPEC;
  if (!directed) {
    command.flags |= command_flag::any_source;
  } else if (!endpoint.peer(call.source, command.peer)) {
    return -FI_EINVAL;
  }
  command.tag = call.tag;
  command.ignore = call.ignore & tag_mask;
  return 0;
}

Completing receive_completing(const Endpoint& endpoint, const ReceiveCall& call) {
  return {.bound = endpoint.receive,
          .counter = endpoint.receives,
          .call_flags = call.flags,
          .completion_flags = FI_RECV | kind_flag(call.tagged),
          .context = call.context,
          .silent = false};
}

void push_receive(const Session& session, Operation& operation, wire::Command& command) {
  rank::Channel& channel = session.channel();
  command.context = session.state().operations.id_of(operation);
  if (operation.counter != nullptr) command.counter = operation.counter->number;
  command.pages = register_buffer(session, *operation.endpoint->domain, operation.buffer,
                                  operation.buffer != nullptr ? command.length : 0);
  charge_look_at_buffer(channel, command.gpu != 0, command.length);
  check_mapping(session, *operation.endpoint->domain, command.gpu != 0);
  channel.charge(channel.header().costs.receive_ps);
  channel.push(command, nullptr);
  record_command(channel, command);
}

ssize_t post(const Session& session, Endpoint& endpoint, const ReceiveCall& call, std::uint32_t block) {
  auto command = endpoint.command(call.tagged ? CommandKind::tagged_receive : CommandKind::receive);
  if (const ssize_t error = fill_match(endpoint, call, command); error != 0) return error;
  const bool multi_receive = !call.tagged && (call.flags & FI_MULTI_RECV) != 0;
  Operation* operation =
      begin_operation(session.state(), endpoint, OperationKind::receive, receive_completing(endpoint, call));
  if (operation == nullptr) return -FI_ENOMEM;
  operation->multi_receive = multi_receive;
  operation->buffer = call.buffer;
  operation->length = call.length;
  if (!multi_receive) operation->block = block;
  if (multi_receive) {
    command.flags |= command_flag::multi_receive;
    command.min_free = endpoint.min_multi_receive;
  }
  command.buffer = reinterpret_cast<std::uint64_t>(call.buffer);
  command.length = call.length;
  name_buffer(endpoint, call.buffer, command);
  push_receive(session, *operation, command);
  return 0;
}

ssize_t peek(const Session& session, Endpoint& endpoint, const ReceiveCall& call) {
  auto command = endpoint.command(call.tagged ? CommandKind::tagged_peek : CommandKind::peek);
  if (const ssize_t error = fill_match(endpoint, call, command); error != 0) return error;
  if (call.tagged) session.channel().note_peek(call.tag, call.ignore);
  Completing completing = receive_completing(endpoint, call);
  completing.bound.selective = false;  // a peek always answers
  completing.counter = nullptr;        // and receives nothing
  Operation* operation = begin_operation(session.state(), endpoint, OperationKind::peek, completing);
  if (operation == nullptr) return -FI_ENOMEM;
  operation->claims = (call.flags & FI_CLAIM) != 0;
  if (operation->claims) command.flags |= command_flag::claim;
  if ((call.flags & FI_DISCARD) != 0) command.flags |= command_flag::discard;
  push_receive(session, *operation, command);
  return 0;
}

// The context says which claim. A discard takes the message into a buffer of no bytes.
ssize_t take_claimed(const Session& session, Endpoint& endpoint, const ReceiveCall& call, std::uint32_t block) {
  Operations& operations = session.state().operations;
  Operation* claim = operations.find_by_context(endpoint, OperationKind::claim, call.context);
  if (claim == nullptr) return -FI_EINVAL;
  Operation* operation =
      begin_operation(session.state(), endpoint, OperationKind::receive, receive_completing(endpoint, call));
  if (operation == nullptr) return -FI_ENOMEM;
  auto command = endpoint.command(CommandKind::receive_claimed);
  command.claim = operations.id_of(*claim);
  operations.remove(*claim);
  operation->discards = (call.flags & FI_DISCARD) != 0;
  if (!operation->discards) {
    operation->block = block;
    operation->buffer = call.buffer;
    operation->length = call.length;
    command.buffer = reinterpret_cast<std::uint64_t>(call.buffer);
    command.length = call.length;
    name_buffer(endpoint, call.buffer, command);
  }
  push_receive(session, *operation, command);
  return 0;
}

rank::Boundary boundary_of(const wire::SegmentHeader& header, const SendCall& call) {
  if (call.inject) return rank::Boundary::inject;
  if (call.length <= header.inline_max) return rank::Boundary::send_short;
  return call.length <= header.eager_max ? rank::Boundary::send_eager : rank::Boundary::send_long;
}

// What a communicator asks for, as far as the service grants it.
std::uint8_t class_of_message(const Endpoint& endpoint, const rank::Channel& channel, std::uint64_t tag) {
  std::uint8_t traffic_class = channel.class_of_tag(tag, endpoint.traffic_class);
  if (traffic_class != endpoint.traffic_class && endpoint.domain->has_nics() &&
      !granted_class(channel, endpoint.domain->auth_key.vni, traffic_class)) {
    return endpoint.traffic_class;
  }
  return traffic_class;
}

// Of the memory that another of the node copies a message out of.
void tell_of_memory(const rank::Channel& channel, Endpoint& endpoint, const SendCall& call, wire::Command& command) {
  PeerCopies& copies = endpoint.domain->peer_copies;
  if (copies.are_attached()) {
    command.flags |= command_flag::attaches;
    command.attaching_ps = copies.attach(command.peer, call.buffer, call.length);
  }
  const wire::SegmentHeader& header = channel.header();
  if (header.copies.cached_ps_per_kib[0] == 0) return;
  const std::uint64_t room = rank::NodeAccounts::cached(header, wire::address_rank(command.peer));
  const std::uint64_t version =
      channel.page().copier.placed.version(reinterpret_cast<std::uint64_t>(call.buffer), call.length);
  const auto within = copies.copy(command.peer, call.buffer, call.length, version, room);
  if (!within.has_value()) return;
  command.flags |= *within <= header.copies.own_cached ? command_flag::kept_in_own : command_flag::kept_in_region;
}

}  // namespace

ssize_t send(Endpoint& endpoint, const SendCall& call) {
  const Session session;
  if (!session || !endpoint.enabled) return -FI_EOPBADSTATE;
  session.channel().boundary(boundary_of(session.channel().header(), call), call.length);
  if ((call.flags & ~known_send_flags) != 0) return bad_flags("send", call.flags & ~known_send_flags);
  rank::Channel& channel = session.channel();
  const bool inject = call.inject || (call.flags & FI_INJECT) != 0;
  if (call.length > (inject ? channel.header().inline_max : message_bytes_max)) return -FI_EMSGSIZE;
  if ((call.tag & ~tag_mask) != 0) return -FI_EINVAL;

  auto command = endpoint.command(call.tagged ? CommandKind::tagged_send : CommandKind::send);
  if (!endpoint.peer(call.target, command.peer)) return -FI_EINVAL;
  command.tag = call.tag;
  if (call.tagged) command.traffic_class = class_of_message(endpoint, channel, call.tag);
  if (call.has_data) {
    command.flags |= command_flag::has_data;
    command.data = call.data;
  }
  command.flags |= completion_level(call.flags);
  if (!take_fence(endpoint, call.flags, command)) return -FI_EINVAL;

  const Completing completing{.bound = endpoint.transmit,
                              .counter = endpoint.sends,
                              .call_flags = call.flags,
                              .completion_flags = FI_SEND | kind_flag(call.tagged),
                              .context = call.context,
                              .silent = call.inject};
  Operation* operation = begin_operation(session.state(), endpoint, OperationKind::transfer, completing);
  if (operation == nullptr) return -FI_ENOMEM;
  operation->length = call.length;
  const std::uint8_t gpu = gpu_of(call.buffer);
  charge_look_at_buffer(channel, gpu != 0, call.length);
  if (!inject) command.gpu = gpu;
  const bool by_memory = !endpoint.domain->has_nics() && !inject && command.gpu == 0;
  if (by_memory && PeerCopies::go_by_memory(call.length)) tell_of_memory(channel, endpoint, call, command);
  const bool fetched = call.length > channel.header().inline_max;
  const std::uint64_t cost_ps = fetched ? channel.header().costs.send_fetched_ps : channel.header().costs.send_ps;
  return push_transfer(session, *operation, command, call.buffer, call.length, !inject, cost_ps);
}

ssize_t receive(Endpoint& endpoint, const ReceiveCall& call) {
  const Session session;
  if (!session || !endpoint.enabled) return -FI_EOPBADSTATE;
  const bool peeks = (call.flags & FI_PEEK) != 0;
  const std::uint32_t block = session.channel().boundary(peeks ? rank::Boundary::peek : rank::Boundary::receive, 0);
  if ((call.flags & ~known_receive_flags) != 0) return bad_flags("receive", call.flags & ~known_receive_flags);
  if ((call.tag & ~tag_mask & ~call.ignore) != 0) return -FI_EINVAL;
  const bool claims = (call.flags & FI_CLAIM) != 0;
  const bool discards = (call.flags & FI_DISCARD) != 0;
  if (endpoint.calls_no_runtime && !peeks && refuses(endpoint, call.buffer)) [[unlikely]]
    return -FI_EOPNOTSUPP;
  if (peeks) {
    if (claims && discards) return bad_flags("FI_PEEK", FI_CLAIM | FI_DISCARD);
    return peek(session, endpoint, call);
  }
  if (claims) return take_claimed(session, endpoint, call, block);
  if (discards) return bad_flags("FI_DISCARD alone", FI_DISCARD);
  return post(session, endpoint, call, block);
}

}  // namespace dryfly::provider
