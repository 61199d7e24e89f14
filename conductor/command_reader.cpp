#include "conductor/command_reader.hpp"

#include <algorithm>
#include <cstring>

namespace dryfly {

using wire::CommandKind;

void CommandReader::drain(Rank& rank) {
  if (rank.process.cut_off) return;
  const std::uint64_t head = rank.page->command_head.load(std::memory_order_acquire);
  if (rank.commands.tail == head) return;
  if (head - rank.commands.tail > ring_bytes_) return parts_.trouble.damaged(rank.id, "place");
  while (rank.commands.tail != head) {
    const std::uint64_t pushed = head - rank.commands.tail;
    const std::uint64_t place = rank.commands.tail % ring_bytes_;
    const std::uint64_t to_end = ring_bytes_ - place;
    const char* record = rank.commands.ring + place;
    const bool wraps = reinterpret_cast<const wire::Command*>(record)->record_bytes == wire::wrap_record;
    const std::uint64_t taken = wraps && to_end < pushed ? to_end : take(rank, record, std::min(to_end, pushed));
    if (taken == 0) break;
    rank.commands.tail += taken;
  }
  rank.page->command_tail.store(rank.commands.tail, std::memory_order_release);
}

std::uint64_t CommandReader::take(Rank& rank, const char* record, std::uint64_t room) {
  const char* payload = record + wire::command_bytes;
  const std::uint32_t slot = parts_.commands.allocate();
  OpenCommand& open = parts_.commands[slot];
  std::memcpy(&open.command, record, sizeof open.command);
  open.rank = rank.id;
  open.tenancy = rank.process.tenancy;
  if (const char* fault = fault_of(rank, open.command, room, payload)) {
    parts_.issuer.refuse(slot, fault);
    return 0;
  }
  if ((open.command.flags & wire::command_flag::payload_inline) != 0 && open.command.length > 0) {
    std::memcpy(parts_.commands.attach_inline(open), payload,
                std::min<std::uint64_t>(open.command.length, wire::inline_bytes_max));
  }
  parts_.peeks.commanded(open.command.kind);
  const std::uint64_t bytes = open.command.record_bytes;
  if (open.command.kind == CommandKind::open_endpoint) {
    parts_.issuer.open_endpoint(slot);
  } else {
    parts_.queue.push(rank.id, slot);
  }
  return bytes;
}

const char* CommandReader::fault_of(const Rank& rank, const wire::Command& command, std::uint64_t room,
                                    const char* payload) const {
  if (const char* fault = scrutiny_.fault_of(command, rank, room, payload)) return fault;
  const bool needs_none = command.kind == CommandKind::open_endpoint || command.kind == CommandKind::count ||
                          command.kind == CommandKind::cancel_trigger || command.kind == CommandKind::write_back ||
                          command.kind == CommandKind::watch;
  const bool has_opened = needs_none || parts_.endpoints.is_known(wire::make_address(rank.id.value, command.endpoint));
  return has_opened ? nullptr : "end-point";
}

void CommandReader::abandon(Rank& rank) {
  drain(rank);
  parts_.work.forget(rank.id);
  for (std::uint32_t index = 0; index < wire::endpoint_count_max; ++index) {
    if (!parts_.endpoints.is_open(EndpointId{wire::make_address(rank.id.value, index)})) continue;
    const std::uint32_t slot = parts_.commands.allocate();
    OpenCommand& open = parts_.commands[slot];
    open.rank = rank.id;
    open.tenancy = rank.process.tenancy;
    open.command.kind = CommandKind::close_endpoint;
    open.command.endpoint = index;
    open.command.at_ps = wire::earliest_ps(*rank.page);
    parts_.queue.push(rank.id, slot);
  }
}

}  // namespace dryfly
