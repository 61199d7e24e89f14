// A write, read or atomic at its instant at the target: which region it is for, and who hears of it.
#include <cerrno>

#include "conductor/translator.hpp"

namespace dryfly {

using wire::CommandKind;
using wire::EventKind;

int Translator::apply(Token token) {
  OpenCommand& open = commands_[token];
  const wire::Command& command = open.command;
  const auto regions = regions_.find(command.peer);
  if (regions == regions_.end()) return EKEYREJECTED;
  const auto region = regions->second.find(command.key);
  if (region == regions->second.end()) return EKEYREJECTED;
  const bool compares = command.kind == CommandKind::compare_atomic;
  const std::uint64_t bytes = compares ? command.aux : command.length;
  if (command.remote_offset > region->second.length || bytes > region->second.length - command.remote_offset) {
    return EINVAL;
  }
  const int error = apply_to(open, region->second, bytes);
  if (error == 0 && region->second.tells) tell_of_access(open, bytes, EventKind::accessed);
  const bool has_data = (command.flags & wire::command_flag::has_data) != 0;
  if (error == 0 && has_data) tell_of_access(open, bytes, EventKind::written);
  return error;
}

void Translator::tell_of_access(const OpenCommand& open, std::uint64_t bytes, EventKind kind) {
  const wire::Command& command = open.command;
  PendingEvent pending;
  pending.event = {};
  pending.event.kind = kind;
  pending.event.endpoint = wire::address_endpoint(command.peer);
  pending.event.peer = open.endpoint().value;
  pending.event.tag = command.key;
  pending.event.length = bytes;
  pending.event.data = command.data;
  pending.event.aux = command.remote_offset;
  const RankId target{wire::address_rank(command.peer)};
  pending.tenancy = ranks_[target.value].tenancy;
  emit(target, std::move(pending));
}

int Translator::apply_to(OpenCommand& open, const Region& region, std::uint64_t bytes) {
  const wire::Command& command = open.command;
  const RankId target{wire::address_rank(command.peer)};
  const std::uint64_t address = region.base + command.remote_offset;
  if (bytes == 0) return 0;
  if (command.kind == CommandKind::read) return apply_read(open, target, address);
  const bool writes = command.kind == CommandKind::write;
  const int error = writes ? apply_write(open, target, address) : apply_atomic_on(open, target, address);
  outlet_.memory_changed(target);
  return error;
}

}  // namespace dryfly
