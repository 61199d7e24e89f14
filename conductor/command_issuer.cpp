#include "conductor/command_issuer.hpp"

#include <utility>

namespace dryfly {

namespace {

using wire::CommandKind;
namespace command_flag = wire::command_flag;

Completeness completeness_of(std::uint32_t flags) {
  if ((flags & command_flag::match_complete) != 0) return Completeness::matched;
  return (flags & command_flag::delivery_complete) != 0 ? Completeness::delivered : Completeness::transmitted;
}

SourceMemory source_memory_of(const wire::Command& command) {
  const Kept kept = (command.flags & command_flag::kept_in_own) != 0      ? Kept::in_own
                    : (command.flags & command_flag::kept_in_region) != 0 ? Kept::in_region
                                                                          : Kept::nowhere;
  if ((command.flags & command_flag::attaches) == 0) return SourceMemory{kept};
  return {Duration{command.attaching_ps}, kept};
}

RmaKind kind_of(CommandKind kind) {
  if (kind == CommandKind::write) return RmaKind::write;
  if (kind == CommandKind::read) return RmaKind::read;
  return kind == CommandKind::atomic ? RmaKind::atomic : RmaKind::fetching_atomic;
}

}  // namespace

CommandIssuer::CommandIssuer(Engine& engine, Nics& nics, const IssuerParts& parts) : nics_(nics), parts_(parts) {
  engine.attach(ComponentClass::host, *this, 3);
}

void CommandIssuer::handle(dryfly::Event event) {
  const RankId rank = rank_of(event);
  if (due_of(event) == Due::news) return parts_.events.tell(rank);
  if (due_of(event) == Due::triggered) return issue_triggered(rank);
  parts_.queue.event_handled();
  const Line line = due_of(event) == Due::at_nic ? Line::to_nic : Line::to_memory;
  for (;;) {
    const std::uint32_t slot = parts_.queue.take_due(rank, line);
    if (slot == no_slot) return;
    issue(slot);
  }
}

void CommandIssuer::prefetch(dryfly::Event event, unsigned stage) const {
  if (due_of(event) == Due::at_nic) parts_.queue.prefetch(rank_of(event), stage);
}

void CommandIssuer::issue_triggered(RankId rank) {
  parts_.triggers.event_handled();
  for (std::uint32_t slot = parts_.triggers.take_due(rank); slot != no_slot; slot = parts_.triggers.take_due(rank)) {
    issue(slot, true);
  }
}

void CommandIssuer::tell_of_entries(RankId rank) {
  if (has_told_of_entries_ || parts_.triggers.without_entry(rank) == 0) return;
  has_told_of_entries_ = true;
  parts_.trouble.without_entry(rank);
}

// What waited for its counter takes its payload now: the NIC reads it when it sends.
void CommandIssuer::issue(std::uint32_t slot, bool triggered) {
  if (parts_.commands[slot].command.trigger != 0) {
    if (!triggered && parts_.triggers.holds(slot)) return tell_of_entries(parts_.commands[slot].rank);
    parts_.payloads.stage(parts_.commands[slot]);
  }
  if (parts_.queue.must_wait(slot)) return;
  const OpenCommand& open = parts_.commands[slot];
  switch (open.command.kind) {
    case CommandKind::send:
    case CommandKind::tagged_send:
      return send(slot);
    case CommandKind::receive:
    case CommandKind::tagged_receive:
    case CommandKind::receive_claimed:
      return receive(slot);
    case CommandKind::peek:
    case CommandKind::tagged_peek:
      return peek(slot);
    case CommandKind::cancel:
      return cancel(slot);
    case CommandKind::count:
      return count(slot);
    case CommandKind::cancel_trigger:
      return cancel_trigger(slot);
    case CommandKind::write:
    case CommandKind::read:
    case CommandKind::atomic:
    case CommandKind::fetch_atomic:
    case CommandKind::compare_atomic:
      return access(slot);
    case CommandKind::join_group:
      return parts_.reductions.join(slot);
    case CommandKind::contribute:
      return refuse_for(parts_.reductions.contribute(slot), slot);
    case CommandKind::leave_group:
      return refuse_for(parts_.reductions.leave(slot), slot);
    case CommandKind::open_endpoint:
      DRYFLY_UNREACHABLE("an end-point is opened when its command is read");
    case CommandKind::close_endpoint:
      close_endpoint(open.endpoint());
      break;
    case CommandKind::work_done:
      if (!parts_.work.done(open)) return refuse(slot, "work");
      break;
    case CommandKind::memory_region:
      parts_.regions.open(open);
      break;
    case CommandKind::close_memory_region:
      parts_.regions.close(open);
      break;
    case CommandKind::move:
      parts_.endpoints.move(open);
      break;
    case CommandKind::write_back:
    case CommandKind::watch:
      tell(open);
      break;
  }
  parts_.commands.release(slot);
}

void CommandIssuer::send(std::uint32_t slot) {
  const OpenCommand& open = parts_.commands[slot];
  const wire::Command& command = open.command;
  if (!parts_.endpoints.is_known(command.peer)) {
    const EndpointId source = open.endpoint();
    parts_.host.dropped(source, slot);
    return parts_.host.send_failed(source, slot, error_unreachable);
  }
  parts_.tally.sent(open.rank, Bytes{command.length});
  nics_.send({.source = open.endpoint(),
              .target = EndpointId{command.peer},
              .envelope = {.tagged = command.kind == CommandKind::tagged_send,
                           .has_data = (command.flags & command_flag::has_data) != 0,
                           .tag = command.tag,
                           .data = command.data},
              .size = Bytes{command.length},
              .token = slot,
              .traffic_class = static_cast<TrafficClass>(command.traffic_class),
              .by_dma = (command.flags & command_flag::by_dma) != 0,
              .gpu = command.gpu,
              .complete_when = completeness_of(command.flags),
              .memory = source_memory_of(command)});
}

void CommandIssuer::receive(std::uint32_t slot) {
  const OpenCommand& open = parts_.commands[slot];
  if (!parts_.endpoints.is_open(open.endpoint())) return refuse(slot, "end-point");
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
                               .gpu = command.gpu,
                               .multi_receive = multi_receive,
                               .min_free = Bytes{multi_receive ? command.min_free : 0}};
  if (command.kind != CommandKind::receive_claimed) return nics_.receive(receive);

  const std::uint32_t claim = parts_.claims.take(open.endpoint(), command.claim);
  if (claim == no_slot) return refuse(slot, "claim");
  nics_.receive_claimed(receive, claim);
  parts_.commands.release(claim);
}

void CommandIssuer::peek(std::uint32_t slot) {
  const OpenCommand& open = parts_.commands[slot];
  if (!parts_.endpoints.is_open(open.endpoint())) return refuse(slot, "end-point");
  const wire::Command& command = open.command;
  nics_.peek({.at = open.endpoint(),
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

void CommandIssuer::cancel(std::uint32_t slot) {
  const EndpointId endpoint = parts_.commands[slot].endpoint();
  const std::uint64_t context = parts_.commands[slot].command.context;
  parts_.commands.release(slot);
  const std::uint32_t found = parts_.commands.find([&](const OpenCommand& candidate) {
    const CommandKind kind = candidate.command.kind;
    const bool is_receive = kind == CommandKind::receive || kind == CommandKind::tagged_receive;
    return is_receive && candidate.command.context == context && candidate.endpoint() == endpoint;
  });
  if (found != no_slot) nics_.cancel(endpoint, found);
}

void CommandIssuer::count(std::uint32_t slot) {
  const OpenCommand& open = parts_.commands[slot];
  const wire::Command& command = open.command;
  if ((command.flags & command_flag::sets) != 0) {
    parts_.triggers.set(open.rank, command.counter, command.data);
    // A reset is written back by itself.
    if (command.data == 0) parts_.news.write_back(open.rank, command.counter, 0);
  } else {
    parts_.triggers.add(open.rank, command.counter, command.data);
  }
  const RankId rank = open.rank;
  const bool told = (command.flags & command_flag::wants_completion) != 0;
  PendingEvent pending = EventWriter::answer_to(open, wire::EventKind::counted);
  parts_.commands.release(slot);
  if (told) parts_.events.write(rank, std::move(pending));
}

void CommandIssuer::tell(const OpenCommand& open) {
  const wire::Command& command = open.command;
  if (command.kind == CommandKind::watch) return parts_.news.watch(open.rank, command.buffer, command.length);
  if ((command.flags & command_flag::sets) != 0) parts_.news.keep_at(open.rank, command.counter, command.buffer);
  parts_.news.write_back(open.rank, command.counter, parts_.triggers.value(open.rank, command.counter));
}

// One that is on its way already takes its course.
void CommandIssuer::cancel_trigger(std::uint32_t slot) {
  const RankId rank = parts_.commands[slot].rank;
  const std::uint32_t found = parts_.triggers.take_out(rank, parts_.commands[slot].command.context);
  parts_.commands.release(slot);
  if (found == no_slot) return;
  parts_.payloads.free(parts_.commands[found]);
  parts_.commands.release(found);
}

void CommandIssuer::access(std::uint32_t slot) {
  const OpenCommand& open = parts_.commands[slot];
  const wire::Command& command = open.command;
  if (!parts_.endpoints.is_known(command.peer)) {
    return parts_.host.rma_done(open.endpoint(), slot, error_unreachable);
  }
  nics_.rma({.kind = kind_of(command.kind),
             .source = open.endpoint(),
             .target = EndpointId{command.peer},
             .size = Bytes{command.length},
             .token = slot,
             .ordered = (command.flags & command_flag::unordered) == 0,
             .traffic_class = static_cast<TrafficClass>(command.traffic_class),
             .by_dma = (command.flags & command_flag::by_dma) != 0,
             .flush = completeness_of(command.flags) != Completeness::transmitted,
             .gpu = command.gpu,
             .target_gpu = parts_.regions.gpu_of(command.peer, command.key)});
}

void CommandIssuer::open_endpoint(std::uint32_t slot) {
  const OpenCommand& open = parts_.commands[slot];
  const EndpointId endpoint = open.endpoint();
  if (parts_.endpoints.is_open(endpoint)) {
    parts_.endpoints.void_queued(endpoint);
    close_endpoint(endpoint);
  }
  parts_.endpoints.open(open);
  parts_.commands.release(slot);
}

// An end-point that is opened again is a new one, and a close that was on its way for the old one does nothing.
void CommandIssuer::close_endpoint(EndpointId endpoint) {
  if (!parts_.endpoints.is_open(endpoint)) return;
  for (const std::uint32_t slot : parts_.queue.close_fences(endpoint)) issue(slot);
  for (const std::uint32_t slot : parts_.triggers.take_all(endpoint)) {
    parts_.payloads.free(parts_.commands[slot]);
    parts_.commands.release(slot);
  }
  parts_.endpoints.close(endpoint);
}

void CommandIssuer::refuse(std::uint32_t slot, const char* reason) {
  const RankId rank = parts_.commands[slot].rank;
  parts_.commands.release(slot);
  parts_.trouble.damaged(rank, reason);
}

}  // namespace dryfly
