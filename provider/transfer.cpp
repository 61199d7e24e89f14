#include "provider/transfer.hpp"

#include <rdma/fi_errno.h>

#include "provider/process.hpp"
#include "provider/progress.hpp"

namespace dryfly::provider {

namespace {

void drop(Process& state, Operation& operation) {
  if (operation.counter != nullptr) --operation.counter->outstanding;
  state.operations.remove(operation);
}

// Sends cannot fail at their source, so an unreported and uncounted one needs no event; memory operations can.
bool wants_event(const Operation& operation, const wire::Command& command) {
  if (operation.counter != nullptr) return true;
  if (operation.queue == nullptr) return false;
  const bool two_sided = command.kind == wire::CommandKind::send || command.kind == wire::CommandKind::tagged_send;
  return operation.reported || !two_sided;
}

bool try_push(wire::Channel& channel, wire::Command& command, const void* payload, std::size_t length, bool stable) {
  if (command.kind != wire::CommandKind::read) return channel.push_with_payload(command, payload, length, stable);
  command.length = length;
  channel.push(command, nullptr);
  return true;
}

// FI_CXI_DISABLE_NON_INJECT_*_IDC: the NIC fetches even the shortest payload, unless its buffer was given up.
bool fetched(const Environment& environment, wire::CommandKind kind) {
  switch (kind) {
    case wire::CommandKind::send:
    case wire::CommandKind::tagged_send:
      return environment.no_message_inline;
    case wire::CommandKind::write:
      return environment.no_memory_inline;
    case wire::CommandKind::atomic:
    case wire::CommandKind::fetch_atomic:
    case wire::CommandKind::compare_atomic:
      return environment.no_atomic_inline;
    default:
      return false;
  }
}

}  // namespace

ssize_t push_transfer(const Session& session, Operation& operation, wire::Command& command, const void* payload,
                      std::size_t length, bool stable, std::uint64_t cost_ps) {
  Process& state = session.state();
  const bool wanted = wants_event(operation, command) || operation.buffer != nullptr;
  if (wanted) {
    command.flags |= wire::command_flag::wants_completion;
    command.context = state.operations.token_of(operation);
  }
  if (stable && fetched(state.environment, command.kind)) command.flags |= wire::command_flag::by_dma;
  session.channel().charge(cost_ps);
  bool pushed = try_push(session.channel(), command, payload, length, stable);
  if (!pushed) {
    progress(session);
    pushed = try_push(session.channel(), command, payload, length, stable);
  }
  if (!pushed || !wanted) drop(state, operation);
  return pushed ? 0 : -FI_EAGAIN;
}

}  // namespace dryfly::provider
