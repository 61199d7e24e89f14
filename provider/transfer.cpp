#include "provider/transfer.hpp"

#include <rdma/fi_errno.h>

#include "provider/deferred.hpp"
#include "provider/mr.hpp"
#include "provider/operation_record.hpp"
#include "provider/process.hpp"
#include "provider/progress.hpp"

namespace dryfly::provider {

namespace {

void drop(Process& state, Operation& operation) {
  if (operation.counter != nullptr) operation.counter->settle_one();
  state.operations.remove(operation);
}

// Sends cannot fail at their source, so an unreported and uncounted one needs no event; memory operations can.
bool wants_event(const Operation& operation, const wire::Command& command) {
  if (operation.counter != nullptr || issues_work()) return true;
  if (operation.queue == nullptr) return false;
  const bool two_sided = command.kind == wire::CommandKind::send || command.kind == wire::CommandKind::tagged_send;
  return operation.reported || !two_sided;
}

// What waits for a counter is read from memory when it is sent; the operands of atomics are those of the call.
bool stays_in_memory(wire::CommandKind kind) {
  return issues_work() && (kind == wire::CommandKind::send || kind == wire::CommandKind::tagged_send ||
                           kind == wire::CommandKind::write);
}

bool try_push(rank::Channel& channel, wire::Command& command, const void* payload, std::size_t length, bool stable) {
  const bool in_memory = stays_in_memory(command.kind) && length > 0;
  if (command.kind != wire::CommandKind::read && !in_memory) {
    return channel.push_with_payload(command, payload, length, stable);
  }
  if (in_memory) {
    command.buffer = reinterpret_cast<std::uint64_t>(payload);
    command.flags |= wire::command_flag::payload_memory;
  }
  command.length = length;
  channel.push(command, nullptr);
  return true;
}

// Inline commands have no room for an offset into the region's memory as match bits have it: of RMA and atomics they
// are for optimized regions only (cxip_rma_is_idc, cxip_amo_is_idc).
// And never for deferred work.
bool needs_dma(const Session& session, const Operation& operation, const wire::Command& command) {
  if (issues_work()) return true;
  switch (command.kind) {
    case wire::CommandKind::write:
    case wire::CommandKind::atomic:
    case wire::CommandKind::fetch_atomic:
    case wire::CommandKind::compare_atomic:
      return !is_optimized(session.state().environment, *operation.endpoint->domain, command.key);
    default:
      return false;
  }
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

// What the NIC moves by DMA has to be registered. Of what it brings back the call says where it goes; the operands of
// atomics are not where the call has them, which the caller registers (fetches_operands).
void register_moved(const Session& session, const Operation& operation, wire::Command& command, const void* payload,
                    std::size_t length, bool stable) {
  Domain& domain = *operation.endpoint->domain;
  if (!domain.registers && domain.lookup_ps == 0) return;
  switch (command.kind) {
    case wire::CommandKind::send:
    case wire::CommandKind::tagged_send:
    case wire::CommandKind::write: {
      const bool access = command.kind == wire::CommandKind::write;
      const bool by_dma = (command.flags & wire::command_flag::by_dma) != 0;
      if (stable && (by_dma || length > session.channel().header().inline_max)) {
        check_mapping(session, domain, command.gpu != 0);
        (access ? command.access_pages : command.pages) = register_buffer(session, domain, payload, length);
      }
      break;
    }
    case wire::CommandKind::read:
    case wire::CommandKind::fetch_atomic:
    case wire::CommandKind::compare_atomic:
      check_mapping(session, domain, gpu_of(operation.buffer) != 0);
      command.access_pages = register_buffer(session, domain, operation.buffer, operation.length);
      break;
    default:
      break;
  }
}

}  // namespace

bool fetches_operands(const Session& session, const Operation& operation, const wire::Command& command) {
  return fetched(session.state().environment, command.kind) || needs_dma(session, operation, command);
}

ssize_t push_transfer(const Session& session, Operation& operation, wire::Command& command, const void* payload,
                      std::size_t length, bool stable, std::uint64_t cost_ps) {
  Process& state = session.state();
  const Endpoint& endpoint = *operation.endpoint;
  if (endpoint.calls_no_runtime && (refuses(endpoint, payload) || refuses(endpoint, operation.buffer))) [[unlikely]] {
    drop(state, operation);
    return -FI_EOPNOTSUPP;
  }
  reach(session, *endpoint.domain, payload, length);
  const bool wanted = wants_event(operation, command) || operation.buffer != nullptr;
  if (wanted) {
    command.flags |= wire::command_flag::wants_completion;
    command.context = state.operations.id_of(operation);
  }
  if ((stable && fetched(state.environment, command.kind)) || needs_dma(session, operation, command)) {
    command.flags |= wire::command_flag::by_dma;
  }
  const bool by_dma = (command.flags & wire::command_flag::by_dma) != 0;
  // What is injected, too: the caller has it back at once.
  const bool kept = stable ? !by_dma && length <= session.channel().header().inline_max : endpoint.domain->knows_gpus;
  if (kept) copy_from_device(session, endpoint, payload, length);
  if (operation.counter != nullptr) command.counter = operation.counter->number;
  if (issues_work()) defer(operation, command);
  register_moved(session, operation, command, payload, length, stable);
  session.channel().charge(cost_ps);
  bool pushed = try_push(session.channel(), command, payload, length, stable);
  if (!pushed) {
    progress(session);
    pushed = try_push(session.channel(), command, payload, length, stable);
  }
  if (pushed) record_command(session.channel(), command);
  if (!pushed || !wanted) drop(state, operation);
  return pushed ? 0 : -FI_EAGAIN;
}

}  // namespace dryfly::provider
