#include "conductor/rank_host.hpp"

#include <algorithm>
#include <utility>

namespace dryfly {

namespace {

using wire::EventKind;
namespace command_flag = wire::command_flag;
namespace event_flag = wire::event_flag;

// libfabric's own error numbers (rdma/fi_errno.h); they are part of its ABI.
constexpr int error_truncated = 265;

RankId rank_of(EndpointId endpoint) { return RankId{wire::address_rank(endpoint.value)}; }

bool is_multi_receive(const OpenCommand& receive) { return (receive.command.flags & command_flag::multi_receive) != 0; }

std::uint32_t flags_of(const Envelope& envelope) {
  return (envelope.has_data ? event_flag::has_data : 0) | (envelope.tagged ? event_flag::tagged : 0);
}

}  // namespace

// The device's memory is not the IOMMU's and not the driver's tables' of the host
// (docs/model/registration.md#left-out).
DmaPages RankHost::buffer_pages(EndpointId, Token token) const {
  const OpenCommand& open = parts_.commands[token];
  const wire::Command& command = open.command;
  if (command.gpu != 0) return {};
  return MemoryRegions::pages_of(open.rank, is_access(command.kind) ? command.access_pages : command.pages);
}

DmaPages RankHost::target_pages(EndpointId, Token access) const {
  const wire::Command& command = parts_.commands[access].command;
  return parts_.regions.pages_at(command.peer, command.key, command.remote_offset);
}

// A NIC answers what is open: a slot that nobody uses has no kind.
OpenCommand& RankHost::answered(Token token) {
  OpenCommand& open = parts_.commands[token];
  DRYFLY_CHECK(open.command.kind != wire::CommandKind{});
  return open;
}

// A send is over when its source knows of its end and nobody needs its payload any more.
void RankHost::release_if_over(Token token, const OpenCommand& send) {
  if (send.sent && send.payload_gone) parts_.commands.release(token);
}

void RankHost::sent(EndpointId source, Token token) {
  OpenCommand& send = answered(token);
  DRYFLY_CHECK(!send.sent);
  send.sent = true;
  parts_.triggers.count(send);
  if ((send.command.flags & command_flag::wants_completion) != 0) {
    PendingEvent pending = EventWriter::answer_to(send, EventKind::sent);
    pending.event.length = send.command.length;
    pending.copier = send.copier;
    pending.copy_number = send.copy_number;
    parts_.events.write(send.rank, std::move(pending));
  }
  release_if_over(token, send);
  parts_.queue.completed(source);
}

void RankHost::dropped(EndpointId, Token token) {
  OpenCommand& send = answered(token);
  DRYFLY_CHECK(!send.payload_gone);
  parts_.payloads.free(send);
  send.payload_gone = true;
  release_if_over(token, send);
}

void RankHost::received(const Received& received) {
  OpenCommand& receive = answered(received.receive);
  OpenCommand& send = answered(received.send);
  DRYFLY_CHECK(!send.payload_gone);
  const std::uint64_t capacity = receive.command.length - std::min(receive.command.length, received.offset.count);
  const bool multi_receive = is_multi_receive(receive);

  PendingEvent pending = EventWriter::answer_to(receive, EventKind::received);
  wire::Event& event = pending.event;
  event.flags |= flags_of(received.envelope);
  if (multi_receive) event.flags |= event_flag::multi_receive;
  if (received.buffer_released) event.flags |= event_flag::released;
  if (received.matched_in_software) event.flags |= event_flag::matched_in_software;
  if (received.lies_in_buffer && (receive.command.flags & command_flag::to_device) != 0) {
    event.flags |= event_flag::to_copy;
  }
  event.peer = received.source.value;
  event.tag = received.envelope.tag;
  event.data = received.envelope.data;
  event.length = received.size.count;
  event.buffer = receive.command.buffer + received.offset.count;
  event.offset = received.offset.count;
  if (received.size.count > capacity) event.error = error_truncated;
  parts_.payloads.attach(pending, send, std::min(received.size.count, capacity), receive.rank);
  parts_.tally.received(received);
  if (event.error == 0) parts_.triggers.count(receive);
  parts_.events.write(receive.rank, std::move(pending));

  if (!multi_receive || received.buffer_released) parts_.commands.release(received.receive);
  send.payload_gone = true;
  release_if_over(received.send, send);
}

void RankHost::head_to_copy(const HeadToCopy& head) {
  const OpenCommand& receive = answered(head.receive);
  if ((receive.command.flags & command_flag::to_device) == 0) return;
  const std::uint64_t room = receive.command.length - std::min(receive.command.length, head.offset.count);
  if (room == 0) return;
  PendingEvent pending = EventWriter::answer_to(receive, EventKind::head_to_copy);
  pending.event.buffer = receive.command.buffer + head.offset.count;
  pending.event.length = std::min(head.size.count, room);
  parts_.events.write(receive.rank, std::move(pending));
}

// The event goes out even if the rank wanted none: of an injected message the provider learns only so that it is lost.
void RankHost::send_failed(EndpointId source, Token token, int error) {
  OpenCommand& send = answered(token);
  DRYFLY_CHECK(!send.sent);
  send.sent = true;
  PendingEvent pending = EventWriter::answer_to(send, EventKind::sent);
  pending.event.error = error;
  pending.event.length = send.command.length;
  const RankId other{wire::address_rank(send.command.peer)};
  const RankId rank = send.rank;
  release_if_over(token, send);
  if (error == error_unreachable) parts_.trouble.unreachable(rank, other);
  parts_.events.write(rank, std::move(pending));
  parts_.queue.completed(source);
}

void RankHost::receive_failed(const Received& received, int error) {
  const OpenCommand& receive = answered(received.receive);
  const RankId rank = receive.rank;
  const bool multi_receive = is_multi_receive(receive);
  PendingEvent pending = EventWriter::answer_to(receive, EventKind::received);
  if (multi_receive) pending.event.flags |= event_flag::multi_receive;
  if (received.buffer_released) pending.event.flags |= event_flag::released;
  pending.event.peer = received.source.value;
  pending.event.tag = received.envelope.tag;
  pending.event.error = error;
  if (!multi_receive || received.buffer_released) parts_.commands.release(received.receive);
  parts_.trouble.unreachable(rank, rank_of(received.source));
  parts_.events.write(rank, std::move(pending));
}

void RankHost::peeked(const Peeked& peeked) {
  const OpenCommand& peek = answered(peeked.peek);
  parts_.peeks.answered(peeked.found);
  PendingEvent pending = EventWriter::answer_to(peek, EventKind::peeked);
  if (peeked.found) {
    pending.event.flags |= event_flag::found | flags_of(peeked.envelope);
    pending.event.peer = peeked.source.value;
    pending.event.tag = peeked.envelope.tag;
    pending.event.data = peeked.envelope.data;
    pending.event.length = peeked.size.count;
  }
  const std::uint32_t flags = peek.command.flags;
  const RankId rank = peek.rank;
  const bool keeps_claim = peeked.found && (flags & command_flag::claim) != 0 && (flags & command_flag::discard) == 0;
  if (keeps_claim) {
    parts_.claims.add(static_cast<std::uint32_t>(peeked.peek));
  } else {
    parts_.commands.release(peeked.peek);
  }
  parts_.events.write(rank, std::move(pending));
}

void RankHost::cancelled(EndpointId, Token token) {
  const OpenCommand& receive = answered(token);
  const RankId rank = receive.rank;
  PendingEvent pending = EventWriter::answer_to(receive, EventKind::cancelled);
  parts_.commands.release(token);
  parts_.events.write(rank, std::move(pending));
}

void RankHost::rma_done(EndpointId source, Token token, int error) {
  OpenCommand& access = answered(token);
  parts_.payloads.free(access);
  PendingEvent pending = EventWriter::answer_to(access, EventKind::rma_done);
  pending.event.error = error;
  pending.event.length = access.command.length;
  pending.event.peer = access.command.peer;
  const bool has_result = Payloads::attach_result(pending, access);
  if (error == 0) parts_.triggers.count(access);
  const bool wanted = (access.command.flags & command_flag::wants_completion) != 0;
  if (!wanted) pending.event.flags |= event_flag::no_completion;
  const RankId rank = access.rank;
  if (error == error_unreachable) parts_.trouble.unreachable(rank, rank_of(EndpointId{access.command.peer}));
  parts_.commands.release(token);
  if (wanted || has_result) parts_.events.write(rank, std::move(pending));
  parts_.queue.completed(source);
}

void RankHost::rma_delivered(const RmaCommand& access, bool on_node, std::uint32_t switch_hops) {
  parts_.tally.accessed(access, on_node, switch_hops);
}

}  // namespace dryfly
