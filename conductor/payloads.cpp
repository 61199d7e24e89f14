#include "conductor/payloads.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "conductor/atomics.hpp"

namespace dryfly {

using wire::CommandKind;
namespace command_flag = wire::command_flag;
namespace event_flag = wire::event_flag;

std::uint64_t bytes_at_target(const wire::Command& command) {
  return command.kind == CommandKind::compare_atomic ? command.operand_bytes : command.length;
}

Payloads::Payloads(Segment& segment, std::vector<Rank>& ranks, OpenCommands& commands)
    : segment_(segment), ranks_(ranks), commands_(commands), memory_(segment, arena_) {
  arena_.open(segment.base(), &segment.header());
}

void Payloads::attach(PendingEvent& pending, OpenCommand& send, std::uint64_t place_length, RankId receiver) {
  pending.event.place_length = place_length;
  const std::uint32_t flags = send.command.flags;
  if ((flags & command_flag::payload_inline) != 0) {
    pending.event.flags |= event_flag::payload_inline;
    if (place_length == 0) return;
    const std::byte* bytes = commands_.inline_bytes(send);
    pending.inline_payload.assign(reinterpret_cast<const char*>(bytes), place_length);
  } else if ((flags & command_flag::payload_arena) != 0) {
    pending.event.flags |= event_flag::payload_arena;  // the receiver frees the block
    pending.event.arena_offset = send.command.arena_offset;
  } else {
    pending.event.flags |= event_flag::payload_memory;
    pending.event.source_buffer = send.command.buffer;
    pending.event.source_pid = ranks_[send.rank.value].process.pid;
    send.copier = receiver;
    send.copy_number = pending.copy_order = ranks_[receiver.value].events.copies.add();
  }
}

void Payloads::stage(OpenCommand& open) {
  wire::Command& command = open.command;
  const bool stays = (command.flags & command_flag::payload_memory) == 0 || command.length == 0;
  if (stays || command.length > segment_.header().eager_max) return;
  const std::uint64_t offset = arena_.allocate(command.length);
  if (offset == 0) return;
  char* staged = segment_.base() + offset;
  if (memory_.read(open.rank, ranks_[open.rank.value].process.pid, command.buffer, staged, command.length) != 0) {
    return wire::Arena::free(segment_.base(), offset);
  }
  command.arena_offset = offset;
  command.flags = (command.flags & ~command_flag::payload_memory) | command_flag::payload_arena;
}

void Payloads::free(OpenCommand& open) {
  if ((open.command.flags & command_flag::payload_arena) == 0) return;
  wire::Arena::free(segment_.base(), open.command.arena_offset);
  open.command.flags &= ~command_flag::payload_arena;
}

std::byte* Payloads::bytes_of(OpenCommand& open) {
  if ((open.command.flags & command_flag::payload_arena) != 0) {
    return reinterpret_cast<std::byte*>(segment_.base() + open.command.arena_offset);
  }
  return open.inline_slot == no_slot ? nullptr : commands_.inline_bytes(open);
}

std::byte* Payloads::make_result(OpenCommand& open, std::uint64_t bytes) {
  DRYFLY_CHECK(open.result_offset == 0);  // an access takes effect once
  open.result_bytes = bytes;
  open.result_offset = arena_.allocate(std::max<std::uint64_t>(bytes, 1));
  if (open.result_offset == 0) return nullptr;
  return reinterpret_cast<std::byte*>(segment_.base() + open.result_offset);
}

int Payloads::write(OpenCommand& open, RankId target, std::uint64_t address) {
  const std::byte* bytes = bytes_of(open);
  if (bytes == nullptr) return write_from_memory(open, target, address);
  return memory_.write(target, ranks_[target.value].process.pid, address, bytes, open.command.length);
}

std::uint64_t Payloads::look(RankId rank, std::uint64_t address, std::uint64_t bytes) {
  std::uint64_t value = 0;
  const std::uint32_t pid = ranks_[rank.value].process.pid;
  return memory_.read(rank, pid, address, &value, std::min(bytes, sizeof value)) == 0 ? value : 0;
}

int Payloads::write_from_memory(const OpenCommand& open, RankId target, std::uint64_t address) {
  constexpr std::uint64_t piece_max = 1 << 20;
  const std::uint64_t length = open.command.length;
  std::vector<std::byte> piece(std::min(length, piece_max));
  const std::uint32_t source_pid = ranks_[open.rank.value].process.pid;
  const std::uint32_t target_pid = ranks_[target.value].process.pid;
  for (std::uint64_t done = 0; done < length;) {
    const std::uint64_t bytes = std::min(length - done, piece_max);
    int error = memory_.read(open.rank, source_pid, open.command.buffer + done, piece.data(), bytes);
    if (error == 0) error = memory_.write(target, target_pid, address + done, piece.data(), bytes);
    if (error != 0) return error;
    done += bytes;
  }
  return 0;
}

int Payloads::read(OpenCommand& open, RankId target, std::uint64_t address) {
  std::byte* result = make_result(open, open.command.length);
  if (result == nullptr) return ENOMEM;
  return memory_.read(target, ranks_[target.value].process.pid, address, result, open.command.length);
}

int Payloads::update(OpenCommand& open, RankId target, std::uint64_t address) {
  const wire::Command& command = open.command;
  const std::uint64_t bytes = bytes_at_target(command);
  const std::uint32_t pid = ranks_[target.value].process.pid;
  const std::byte* operand = bytes_of(open);
  DRYFLY_CHECK(operand != nullptr);
  std::vector<std::byte> value(bytes);
  if (const int error = memory_.read(target, pid, address, value.data(), bytes)) return error;
  if (command.kind != CommandKind::atomic) {
    std::byte* result = make_result(open, bytes);
    if (result == nullptr) return ENOMEM;
    std::memcpy(result, value.data(), bytes);
  }
  const std::byte* compare = command.kind == CommandKind::compare_atomic ? operand + bytes : nullptr;
  if (!apply_atomic(command.atomic_op, command.atomic_type, value.data(), operand, compare, bytes)) return EINVAL;
  return memory_.write(target, pid, address, value.data(), bytes);
}

bool Payloads::attach_result(PendingEvent& pending, const OpenCommand& open) {
  if (open.result_offset == 0) return false;
  pending.event.flags |= event_flag::payload_arena;
  pending.event.arena_offset = open.result_offset;
  pending.event.place_length = pending.event.error == 0 ? open.result_bytes : 0;
  pending.event.buffer = open.command.buffer;
  return true;
}

}  // namespace dryfly
