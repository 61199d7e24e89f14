#include "conductor/translator.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "conductor/atomics.hpp"

namespace dryfly {

namespace {

using wire::CommandKind;
using wire::EventKind;
namespace command_flag = wire::command_flag;
namespace event_flag = wire::event_flag;

// libfabric's own error numbers (rdma/fi_errno.h); they are part of its ABI.
constexpr int error_truncated = 265;

constexpr std::uint64_t host_class = static_cast<std::uint64_t>(ComponentClass::host) << component_class_shift;

Completeness completeness_of(std::uint32_t flags) {
  if ((flags & command_flag::match_complete) != 0) return Completeness::matched;
  return (flags & command_flag::delivery_complete) != 0 ? Completeness::delivered : Completeness::transmitted;
}

}  // namespace

Translator::Translator(Engine& engine, const Dragonfly& topology, Segment& segment, std::vector<Rank>& ranks,
                       EventOutlet& outlet, Duration command_latency, Duration completion_latency)
    : engine_(engine),
      topology_(topology),
      segment_(segment),
      ranks_(ranks),
      outlet_(outlet),
      command_latency_(command_latency),
      completion_latency_(completion_latency),
      memory_(segment, arena_),
      tally_(engine, commands_),
      scrutiny_(segment.header(), topology),
      groups_(topology),
      known_(ranks.size() * wire::endpoint_count_max) {
  arena_.open(segment.base(), &segment.header());
  engine.attach(ComponentClass::host, *this);
}

void Translator::schedule_head(Rank& rank) {
  // Commands of one rank are in the order of their instants, so only the oldest needs a place in the event queue.
  const Instant stamped{commands_[rank.commands.front()].command.at_ps};
  ++events_scheduled_;
  engine_.schedule(std::max(stamped + command_latency_, engine_.now()), host_class | rank.id.value);
}

void Translator::handle(dryfly::Event event) {
  ++events_handled_;
  Rank& rank = ranks_[static_cast<std::uint32_t>(event.key)];
  while (!rank.commands.empty()) {
    const std::uint32_t slot = rank.commands.front();
    if (Instant{commands_[slot].command.at_ps} + command_latency_ > engine_.now()) {
      schedule_head(rank);
      return;
    }
    rank.commands.pop_front();
    if (!rank.commands.empty()) commands_.fetch(rank.commands.front());
    execute(slot);
  }
}

void Translator::fetch(dryfly::Event event, unsigned stage) const {
  const Rank& rank = ranks_[static_cast<std::uint32_t>(event.key)];
  if (stage == 0) __builtin_prefetch(&rank.commands);
  if (stage == 2 && !rank.commands.empty()) commands_.fetch(rank.commands.front());
}

void Translator::execute(std::uint32_t slot) {
  if (held_back(slot)) return;
  OpenCommand& open = commands_[slot];
  const wire::Command& command = open.command;
  switch (command.kind) {
    case CommandKind::send:
    case CommandKind::tagged_send:
      return execute_send(slot, open);
    case CommandKind::receive:
    case CommandKind::tagged_receive:
    case CommandKind::receive_claimed:
      return execute_receive(slot, open);
    case CommandKind::peek:
    case CommandKind::tagged_peek:
      return execute_peek(slot, open);
    case CommandKind::cancel:
      return execute_cancel(slot, open);
    case CommandKind::write:
    case CommandKind::read:
    case CommandKind::atomic:
    case CommandKind::fetch_atomic:
    case CommandKind::compare_atomic:
      return execute_rma(slot, open);
    case CommandKind::join_group:
      return execute_join(slot, open);
    case CommandKind::contribute:
      return execute_contribution(slot, open);
    case CommandKind::leave_group:
      return execute_leave(slot, open);
    case CommandKind::open_endpoint:
      break;  // done by drain()
    case CommandKind::close_endpoint:
      close_endpoint(open.endpoint());
      break;
    case CommandKind::work_done:
      return execute_work_done(slot, open);
    case CommandKind::memory_region:
      regions_[open.endpoint().value][command.key] =
          Region{command.buffer, command.length, (command.flags & command_flag::tells) != 0};
      break;
    case CommandKind::close_memory_region:
      regions_[open.endpoint().value].erase(command.key);
      break;
  }
  commands_.release(slot);
}

void Translator::execute_send(std::uint32_t slot, OpenCommand& open) {
  const wire::Command& command = open.command;
  Rank& rank = ranks_[open.rank.value];
  if (!reachable(command.peer)) return refuse_send(slot);
  ++rank.messages_sent;
  rank.bytes_sent += command.length;
  nics_->send({.source = open.endpoint(),
               .target = EndpointId{command.peer},
               .envelope = {.tagged = command.kind == CommandKind::tagged_send,
                            .has_data = (command.flags & command_flag::has_data) != 0,
                            .tag = command.tag,
                            .data = command.data},
               .size = Bytes{command.length},
               .token = slot,
               .traffic_class = static_cast<TrafficClass>(command.traffic_class),
               .by_dma = (command.flags & command_flag::by_dma) != 0,
               .complete_when = completeness_of(command.flags)});
}

void Translator::execute_receive(std::uint32_t slot, OpenCommand& open) {
  if (!is_open(open)) return refuse_command(slot, "end-point");
  const wire::Command& command = open.command;
  const bool multi_receive = (command.flags & command_flag::multi_receive) != 0;
  const ReceiveCommand receive{.at = open.endpoint(),
                               .tagged = command.kind != CommandKind::receive,
                               .any_source = (command.flags & command_flag::any_source) != 0,
                               .source = EndpointId{command.peer},
                               .tag = command.tag,
                               .ignore = command.ignore,
                               .capacity = Bytes{command.length},
                               .token = slot,
                               .multi_receive = multi_receive,
                               .min_free = Bytes{multi_receive ? command.key : 0}};
  if (command.kind != CommandKind::receive_claimed) return nics_->receive(receive);

  auto& claims = ranks_[open.rank.value].claims;
  const auto claim = std::find_if(claims.begin(), claims.end(), [&](std::uint32_t candidate) {
    const wire::Command& peek = commands_[candidate].command;
    return peek.endpoint == command.endpoint && peek.context == command.aux;
  });
  if (claim == claims.end()) return refuse_command(slot, "claim");
  const std::uint32_t claim_slot = *claim;
  claims.erase(claim);
  nics_->receive_claimed(receive, claim_slot);
  commands_.release(claim_slot);
}

void Translator::execute_peek(std::uint32_t slot, OpenCommand& open) {
  if (!is_open(open)) return refuse_command(slot, "end-point");
  const wire::Command& command = open.command;
  nics_->peek({.at = open.endpoint(),
               .tagged = command.kind == CommandKind::tagged_peek,
               .any_source = (command.flags & command_flag::any_source) != 0,
               .source = EndpointId{command.peer},
               .tag = command.tag,
               .ignore = command.ignore,
               .token = slot,
               .claim = (command.flags & command_flag::claim) != 0,
               .discard = (command.flags & command_flag::discard) != 0,
               .waits = (command.flags & command_flag::waits) != 0});
}

void Translator::execute_cancel(std::uint32_t slot, OpenCommand& open) {
  const EndpointId endpoint = open.endpoint();
  const std::uint64_t context = open.command.context;
  commands_.release(slot);
  const auto found = commands_.find([&](const OpenCommand& candidate) {
    const CommandKind kind = candidate.command.kind;
    const bool is_receive = kind == CommandKind::receive || kind == CommandKind::tagged_receive;
    return is_receive && candidate.command.context == context && candidate.endpoint() == endpoint;
  });
  if (found != no_slot) nics_->cancel(endpoint, found);
}

void Translator::execute_rma(std::uint32_t slot, OpenCommand& open) {
  const wire::Command& command = open.command;
  if (!reachable(command.peer)) return rma_done(open.endpoint(), slot, error_unreachable);
  RmaKind kind = RmaKind::fetching_atomic;
  if (command.kind == CommandKind::write) kind = RmaKind::write;
  if (command.kind == CommandKind::read) kind = RmaKind::read;
  if (command.kind == CommandKind::atomic) kind = RmaKind::atomic;
  nics_->rma({.kind = kind,
              .source = open.endpoint(),
              .target = EndpointId{command.peer},
              .size = Bytes{command.length},
              .token = slot,
              .ordered = (command.flags & command_flag::unordered) == 0,
              .traffic_class = static_cast<TrafficClass>(command.traffic_class),
              .by_dma = (command.flags & command_flag::by_dma) != 0,
              .flush = completeness_of(command.flags) != Completeness::transmitted});
}

PendingEvent Translator::event_for(const OpenCommand& open, EventKind kind) const {
  PendingEvent pending;
  pending.event = {};
  pending.event.kind = kind;
  pending.tenancy = open.tenancy;
  pending.event.endpoint = open.command.endpoint;
  pending.event.context = open.command.context;
  return pending;
}

void Translator::emit(RankId rank, PendingEvent&& pending) {
  pending.event.at_ps = (engine_.now() + completion_latency_).ps;
  outlet_.emit(rank, std::move(pending));
}

void Translator::free_payload(OpenCommand& open) {
  if ((open.command.flags & command_flag::payload_arena) == 0) return;
  wire::Arena::free(segment_.base(), open.command.arena_offset);
  open.command.flags &= ~command_flag::payload_arena;
}

void Translator::finish_send(Token token, OpenCommand& open) {
  if (open.sent && open.payload_gone) commands_.release(token);
}

void Translator::sent(EndpointId source, Token token) {
  OpenCommand& open = commands_[token];
  open.sent = true;
  if ((open.command.flags & command_flag::wants_completion) != 0) {
    PendingEvent pending = event_for(open, EventKind::sent);
    pending.event.length = open.command.length;
    pending.copier = open.copier;
    pending.copy_number = open.copy_number;
    emit(open.rank, std::move(pending));
  }
  finish_send(token, open);
  finished(source);
}

void Translator::dropped(Token token) {
  OpenCommand& open = commands_[token];
  free_payload(open);
  open.payload_gone = true;
  finish_send(token, open);
}

void Translator::attach_payload(PendingEvent& pending, OpenCommand& send, std::uint64_t place_length, RankId receiver) {
  pending.event.place_length = place_length;
  const std::uint32_t flags = send.command.flags;
  if ((flags & command_flag::payload_inline) != 0) {
    pending.event.flags |= event_flag::payload_inline;
    if (place_length == 0) return;
    const std::byte* bytes = commands_.inline_bytes(send);
    pending.inline_payload.assign(bytes, bytes + place_length);
  } else if ((flags & command_flag::payload_arena) != 0) {
    pending.event.flags |= event_flag::payload_arena;  // the receiver frees the block
    pending.event.arena_offset = send.command.arena_offset;
  } else {
    pending.event.flags |= event_flag::payload_memory;
    pending.event.source_buffer = send.command.buffer;
    pending.event.source_pid = ranks_[send.rank.value].pid;
    send.copier = receiver;
    send.copy_number = ++ranks_[receiver.value].copies_ordered;
  }
}

void Translator::received(const Received& received) {
  OpenCommand& receive = commands_[received.receive];
  OpenCommand& send = commands_[received.send];
  const std::uint64_t capacity = receive.command.length - std::min(receive.command.length, received.offset.count);
  const bool multi_receive = (receive.command.flags & command_flag::multi_receive) != 0;

  PendingEvent pending = event_for(receive, EventKind::received);
  wire::Event& event = pending.event;
  if (received.envelope.has_data) event.flags |= event_flag::has_data;
  if (received.envelope.tagged) event.flags |= event_flag::tagged;
  if (multi_receive) event.flags |= event_flag::multi_receive;
  if (received.buffer_released) event.flags |= event_flag::released;
  if (received.matched_in_software) event.flags |= event_flag::matched_in_software;
  event.peer = received.source.value;
  event.tag = received.envelope.tag;
  event.data = received.envelope.data;
  event.length = received.size.count;
  event.buffer = receive.command.buffer + received.offset.count;
  event.aux = received.offset.count;
  if (received.size.count > capacity) event.error = error_truncated;
  attach_payload(pending, send, std::min(received.size.count, capacity), receive.rank);
  tally_.received(received);
  emit(receive.rank, std::move(pending));

  if (!multi_receive || received.buffer_released) commands_.release(received.receive);
  send.payload_gone = true;
  finish_send(received.send, send);
}

// The event goes out even if the rank wanted none: of an injected message the provider learns only so that it is lost.
void Translator::send_failed(EndpointId source, Token token, int error) {
  OpenCommand& open = commands_[token];
  open.sent = true;
  PendingEvent pending = event_for(open, EventKind::sent);
  pending.event.error = error;
  pending.event.length = open.command.length;
  const RankId other{wire::address_rank(open.command.peer)};
  const RankId rank = open.rank;
  finish_send(token, open);
  if (error == error_unreachable) outlet_.unreachable(rank, other);
  emit(rank_of(source).id, std::move(pending));
  finished(source);
}

void Translator::receive_failed(const Received& received, int error) {
  OpenCommand& receive = commands_[received.receive];
  const RankId rank = receive.rank;
  const bool multi_receive = (receive.command.flags & command_flag::multi_receive) != 0;
  PendingEvent pending = event_for(receive, EventKind::received);
  if (multi_receive) pending.event.flags |= event_flag::multi_receive;
  if (received.buffer_released) pending.event.flags |= event_flag::released;
  pending.event.peer = received.source.value;
  pending.event.tag = received.envelope.tag;
  pending.event.error = error;
  if (!multi_receive || received.buffer_released) commands_.release(received.receive);
  outlet_.unreachable(rank, RankId{wire::address_rank(received.source.value)});
  emit(rank, std::move(pending));
}

void Translator::peeked(const Peeked& peeked) {
  OpenCommand& open = commands_[peeked.peek];
  PendingEvent pending = event_for(open, EventKind::peeked);
  if (peeked.found) {
    pending.event.flags |= event_flag::found;
    if (peeked.envelope.has_data) pending.event.flags |= event_flag::has_data;
    if (peeked.envelope.tagged) pending.event.flags |= event_flag::tagged;
    pending.event.peer = peeked.source.value;
    pending.event.tag = peeked.envelope.tag;
    pending.event.data = peeked.envelope.data;
    pending.event.length = peeked.size.count;
  }
  const std::uint32_t flags = open.command.flags;
  const RankId rank = open.rank;
  const bool keeps_claim = peeked.found && (flags & command_flag::claim) != 0 && (flags & command_flag::discard) == 0;
  if (keeps_claim) {
    ranks_[rank.value].claims.push_back(static_cast<std::uint32_t>(peeked.peek));
  } else {
    commands_.release(peeked.peek);
  }
  emit(rank, std::move(pending));
}

void Translator::cancelled(EndpointId, Token token) {
  OpenCommand& open = commands_[token];
  const RankId rank = open.rank;
  PendingEvent pending = event_for(open, EventKind::cancelled);
  commands_.release(token);
  emit(rank, std::move(pending));
}

std::byte* Translator::payload_bytes(OpenCommand& open) {
  if ((open.command.flags & command_flag::payload_arena) != 0) {
    return reinterpret_cast<std::byte*>(segment_.base() + open.command.arena_offset);
  }
  return open.inline_slot == no_slot ? nullptr : commands_.inline_bytes(open);
}

std::byte* Translator::result_bytes(OpenCommand& open, std::uint64_t bytes) {
  open.result_bytes = bytes;
  open.result_offset = arena_.allocate(std::max<std::uint64_t>(bytes, 1));
  if (open.result_offset == 0) return nullptr;
  return reinterpret_cast<std::byte*>(segment_.base() + open.result_offset);
}

int Translator::apply_write(OpenCommand& open, RankId target, std::uint64_t address) {
  const std::uint32_t pid = ranks_[target.value].pid;
  const std::uint64_t length = open.command.length;
  if (const std::byte* bytes = payload_bytes(open)) return memory_.write(target, pid, address, bytes, length);

  constexpr std::uint64_t piece_max = 1 << 20;
  std::vector<std::byte> piece(std::min(length, piece_max));
  const std::uint32_t source_pid = ranks_[open.rank.value].pid;
  for (std::uint64_t done = 0; done < length;) {
    const std::uint64_t bytes = std::min(length - done, piece_max);
    int error = memory_.read(open.rank, source_pid, open.command.buffer + done, piece.data(), bytes);
    if (error == 0) error = memory_.write(target, pid, address + done, piece.data(), bytes);
    if (error != 0) return error;
    done += bytes;
  }
  return 0;
}

int Translator::apply_read(OpenCommand& open, RankId target, std::uint64_t address) {
  std::byte* result = result_bytes(open, open.command.length);
  if (result == nullptr) return ENOMEM;
  return memory_.read(target, ranks_[target.value].pid, address, result, open.command.length);
}

int Translator::apply_atomic_on(OpenCommand& open, RankId target, std::uint64_t address) {
  const wire::Command& command = open.command;
  const bool compares = command.kind == CommandKind::compare_atomic;
  const std::uint64_t bytes = compares ? command.aux : command.length;
  const std::uint32_t pid = ranks_[target.value].pid;
  const std::byte* operand = payload_bytes(open);
  std::vector<std::byte> value(bytes);
  if (const int error = memory_.read(target, pid, address, value.data(), bytes)) return error;
  if (command.kind != CommandKind::atomic) {
    std::byte* result = result_bytes(open, bytes);
    if (result == nullptr) return ENOMEM;
    std::memcpy(result, value.data(), bytes);
  }
  const std::byte* compare = compares ? operand + bytes : nullptr;
  if (!apply_atomic(command.atomic_op, command.atomic_type, value.data(), operand, compare, bytes)) return EINVAL;
  return memory_.write(target, pid, address, value.data(), bytes);
}

void Translator::rma_done(EndpointId source, Token token, int error) {
  OpenCommand& open = commands_[token];
  free_payload(open);
  PendingEvent pending = event_for(open, EventKind::rma_done);
  pending.event.error = error;
  pending.event.length = open.command.length;
  pending.event.peer = open.command.peer;
  if (open.result_offset != 0) {
    pending.event.flags |= event_flag::payload_arena;
    pending.event.arena_offset = open.result_offset;
    pending.event.place_length = error == 0 ? open.result_bytes : 0;
    pending.event.buffer = open.command.buffer;
  }
  const bool wanted = (open.command.flags & command_flag::wants_completion) != 0;
  if (!wanted) pending.event.flags |= event_flag::no_completion;
  const RankId rank = open.rank;
  if (error == error_unreachable) outlet_.unreachable(rank, RankId{wire::address_rank(open.command.peer)});
  const bool has_result = open.result_offset != 0;
  commands_.release(token);
  if (wanted || has_result) emit(rank, std::move(pending));
  finished(source);
}

void Translator::rma_delivered(const RmaCommand& command, bool on_node, std::uint32_t switch_hops) {
  Rank& rank = rank_of(command.source);
  ++rank.messages_sent;
  rank.bytes_sent += command.size.count;
  tally_.accessed(command, on_node, switch_hops);
}

}  // namespace dryfly
