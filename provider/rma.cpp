#include "provider/rma.hpp"

#include <rdma/fi_errno.h>

#include "provider/attributes.hpp"
#include "provider/device_memory.hpp"
#include "provider/ep.hpp"
#include "provider/log.hpp"
#include "provider/memory.hpp"
#include "provider/mr.hpp"
#include "provider/process.hpp"
#include "provider/transfer.hpp"
#include "provider/two_sided.hpp"
#include "provider/unsupported.hpp"

namespace dryfly::provider {

namespace {

struct MemoryCall {
  bool is_read = false;
  void* buffer = nullptr;
  std::size_t length = 0;
  fi_addr_t target = FI_ADDR_UNSPEC;
  std::uint64_t offset = 0;
  std::uint64_t key = 0;
  std::uint64_t flags = 0;
  void* context = nullptr;
  bool inject = false;
  bool has_data = false;
  std::uint64_t data = 0;
};

// The restricted protocol, without order and with less state in the NICs: to optimized regions, unless the end-point
// wants its writes in order or its peers' regions tell of them.
bool restricted(const Session& session, const Endpoint& endpoint, const MemoryCall& call) {
  constexpr std::uint64_t writes_in_order = FI_ORDER_WAW | FI_ORDER_RMA_WAW;
  const Domain& domain = *endpoint.domain;
  const bool tells =
      domain.provider_keys ? tells_of_accesses(domain, call.key) : (endpoint.capabilities & FI_RMA_EVENT) != 0;
  return is_optimized(session.state().environment, domain, call.key) && !call.is_read && !call.has_data &&
         (endpoint.order & writes_in_order) == 0 && !tells;
}

ssize_t perform(Endpoint& endpoint, const MemoryCall& call) {
  const Session session;
  if (!session || !endpoint.enabled) return -FI_EOPBADSTATE;
  session.channel().boundary(call.is_read ? rank::Boundary::read : rank::Boundary::write, call.length);
  constexpr std::uint64_t known = transmit_flags | FI_MORE;
  if ((call.flags & ~known) != 0) {
    log("RMA: flags 0x%llx are not offered", static_cast<unsigned long long>(call.flags & ~known));
    return -FI_EBADFLAGS;
  }
  rank::Channel& channel = session.channel();
  const bool inject = call.inject || (!call.is_read && (call.flags & FI_INJECT) != 0);
  if (call.length > (inject ? channel.header().inline_max : message_bytes_max)) return -FI_EMSGSIZE;

  auto command = endpoint.command(call.is_read ? wire::CommandKind::read : wire::CommandKind::write);
  if (!endpoint.peer(call.target, command.peer)) return -FI_EINVAL;
  command.remote_offset = call.offset;
  command.key = call.key;
  command.flags |= completion_level(call.flags);
  if (!take_fence(endpoint, call.flags, command)) return -FI_EINVAL;
  if (restricted(session, endpoint, call)) command.flags |= wire::command_flag::unordered;
  if (call.has_data) {
    command.flags |= wire::command_flag::has_data | wire::command_flag::by_dma;
    command.data = call.data;
  }

  const Completing completing{
      .bound = endpoint.transmit,
      .counter = call.is_read ? endpoint.reads : endpoint.writes,
      .call_flags = call.flags,
      .completion_flags = FI_RMA | (call.is_read ? std::uint64_t{FI_READ} : std::uint64_t{FI_WRITE}),
      .context = call.context,
      .silent = call.inject};
  Operation* operation = begin_operation(session.state(), endpoint, OperationKind::transfer, completing);
  if (operation == nullptr) return -FI_ENOMEM;
  operation->length = call.length;
  if (!inject) command.gpu = gpu_of(call.buffer);
  if (call.is_read) {
    operation->buffer = call.buffer;
    command.buffer = reinterpret_cast<std::uint64_t>(call.buffer);
  }
  const bool fetched = call.is_read || call.length > channel.header().inline_max;
  const std::uint64_t cost_ps = fetched ? channel.header().costs.rma_fetched_ps : channel.header().costs.rma_ps;
  return push_transfer(session, *operation, command, call.buffer, call.length, !inject, cost_ps);
}

ssize_t access(fid_ep* fid, bool is_read, void* buffer, std::size_t length, fi_addr_t target, std::uint64_t offset,
               std::uint64_t key, void* context) {
  auto& endpoint = *object_of<Endpoint>(fid);
  return perform(endpoint, {.is_read = is_read,
                            .buffer = buffer,
                            .length = length,
                            .target = target,
                            .offset = offset,
                            .key = key,
                            .flags = endpoint.transmit_flags,
                            .context = context});
}

ssize_t access_message(fid_ep* fid, bool is_read, const fi_msg_rma* message, std::uint64_t flags) {
  void* buffer = nullptr;
  std::size_t length = 0;
  if (message->rma_iov_count != 1 || !single(message->msg_iov, message->iov_count, buffer, length) ||
      message->rma_iov->len != length) {
    return -FI_EINVAL;
  }
  return perform(*object_of<Endpoint>(fid), {.is_read = is_read,
                                             .buffer = buffer,
                                             .length = length,
                                             .target = message->addr,
                                             .offset = message->rma_iov->addr,
                                             .key = message->rma_iov->key,
                                             .flags = flags,
                                             .context = message->context});
}

ssize_t read(fid_ep* fid, void* buffer, std::size_t length, void*, fi_addr_t source, std::uint64_t offset,
             std::uint64_t key, void* context) {
  return access(fid, true, buffer, length, source, offset, key, context);
}

ssize_t read_vector(fid_ep* fid, const iovec* parts, void**, std::size_t count, fi_addr_t source, std::uint64_t offset,
                    std::uint64_t key, void* context) {
  void* buffer = nullptr;
  std::size_t length = 0;
  if (!single(parts, count, buffer, length)) return -FI_EINVAL;
  return access(fid, true, buffer, length, source, offset, key, context);
}

ssize_t read_message(fid_ep* fid, const fi_msg_rma* message, std::uint64_t flags) {
  return access_message(fid, true, message, flags);
}

ssize_t write(fid_ep* fid, const void* buffer, std::size_t length, void*, fi_addr_t target, std::uint64_t offset,
              std::uint64_t key, void* context) {
  return access(fid, false, const_cast<void*>(buffer), length, target, offset, key, context);
}

ssize_t write_vector(fid_ep* fid, const iovec* parts, void**, std::size_t count, fi_addr_t target, std::uint64_t offset,
                     std::uint64_t key, void* context) {
  void* buffer = nullptr;
  std::size_t length = 0;
  if (!single(parts, count, buffer, length)) return -FI_EINVAL;
  return access(fid, false, buffer, length, target, offset, key, context);
}

ssize_t write_message(fid_ep* fid, const fi_msg_rma* message, std::uint64_t flags) {
  return access_message(fid, false, message, flags);
}

ssize_t inject_write(fid_ep* fid, const void* buffer, std::size_t length, fi_addr_t target, std::uint64_t offset,
                     std::uint64_t key) {
  return perform(*object_of<Endpoint>(fid), {.buffer = const_cast<void*>(buffer),
                                             .length = length,
                                             .target = target,
                                             .offset = offset,
                                             .key = key,
                                             .inject = true});
}

ssize_t write_data(fid_ep* fid, const void* buffer, std::size_t length, void*, std::uint64_t data, fi_addr_t target,
                   std::uint64_t offset, std::uint64_t key, void* context) {
  auto& endpoint = *object_of<Endpoint>(fid);
  return perform(endpoint, {.buffer = const_cast<void*>(buffer),
                            .length = length,
                            .target = target,
                            .offset = offset,
                            .key = key,
                            .flags = endpoint.transmit_flags,
                            .context = context,
                            .has_data = true,
                            .data = data});
}

ssize_t inject_write_data(fid_ep* fid, const void* buffer, std::size_t length, std::uint64_t data, fi_addr_t target,
                          std::uint64_t offset, std::uint64_t key) {
  return perform(*object_of<Endpoint>(fid), {.buffer = const_cast<void*>(buffer),
                                             .length = length,
                                             .target = target,
                                             .offset = offset,
                                             .key = key,
                                             .inject = true,
                                             .has_data = true,
                                             .data = data});
}

}  // namespace

fi_ops_rma rma_calls_with_data = {
    .size = sizeof(fi_ops_rma),
    .read = read,
    .readv = read_vector,
    .readmsg = read_message,
    .write = write,
    .writev = write_vector,
    .writemsg = write_message,
    .inject = inject_write,
    .writedata = write_data,
    .injectdata = inject_write_data,
};

fi_ops_rma rma_calls = {
    .size = sizeof(fi_ops_rma),
    .read = read,
    .readv = read_vector,
    .readmsg = read_message,
    .write = write,
    .writev = write_vector,
    .writemsg = write_message,
    .inject = inject_write,
    .writedata = unsupported,
    .injectdata = unsupported,
};

}  // namespace dryfly::provider
