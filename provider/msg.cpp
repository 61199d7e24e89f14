#include "provider/msg.hpp"

#include <rdma/fi_errno.h>

#include "provider/memory.hpp"
#include "provider/two_sided.hpp"

namespace dryfly::provider {

namespace {

ssize_t receive_one(fid_ep* fid, void* buffer, std::size_t length, void*, fi_addr_t source, void* context) {
  auto& endpoint = *object_of<Endpoint>(fid);
  return receive(
      endpoint,
      {.buffer = buffer, .length = length, .source = source, .flags = endpoint.receive_flags, .context = context});
}

ssize_t receive_vector(fid_ep* fid, const iovec* parts, void**, std::size_t count, fi_addr_t source, void* context) {
  void* buffer = nullptr;
  std::size_t length = 0;
  if (!single(parts, count, buffer, length)) return -FI_EINVAL;
  return receive_one(fid, buffer, length, nullptr, source, context);
}

ssize_t receive_message(fid_ep* fid, const fi_msg* message, std::uint64_t flags) {
  void* buffer = nullptr;
  std::size_t length = 0;
  if (!single(message->msg_iov, message->iov_count, buffer, length)) return -FI_EINVAL;
  return receive(
      *object_of<Endpoint>(fid),
      {.buffer = buffer, .length = length, .source = message->addr, .flags = flags, .context = message->context});
}

ssize_t send_one(fid_ep* fid, const void* buffer, std::size_t length, void*, fi_addr_t target, void* context) {
  auto& endpoint = *object_of<Endpoint>(fid);
  return send(
      endpoint,
      {.buffer = buffer, .length = length, .target = target, .flags = endpoint.transmit_flags, .context = context});
}

ssize_t send_vector(fid_ep* fid, const iovec* parts, void**, std::size_t count, fi_addr_t target, void* context) {
  void* buffer = nullptr;
  std::size_t length = 0;
  if (!single(parts, count, buffer, length)) return -FI_EINVAL;
  return send_one(fid, buffer, length, nullptr, target, context);
}

ssize_t send_message(fid_ep* fid, const fi_msg* message, std::uint64_t flags) {
  void* buffer = nullptr;
  std::size_t length = 0;
  if (!single(message->msg_iov, message->iov_count, buffer, length)) return -FI_EINVAL;
  return send(*object_of<Endpoint>(fid), {.buffer = buffer,
                                          .length = length,
                                          .target = message->addr,
                                          .has_data = (flags & FI_REMOTE_CQ_DATA) != 0,
                                          .data = message->data,
                                          .flags = flags,
                                          .context = message->context});
}

ssize_t inject(fid_ep* fid, const void* buffer, std::size_t length, fi_addr_t target) {
  return send(*object_of<Endpoint>(fid), {.buffer = buffer, .length = length, .target = target, .inject = true});
}

ssize_t send_data(fid_ep* fid, const void* buffer, std::size_t length, void*, std::uint64_t data, fi_addr_t target,
                  void* context) {
  auto& endpoint = *object_of<Endpoint>(fid);
  return send(endpoint, {.buffer = buffer,
                         .length = length,
                         .target = target,
                         .has_data = true,
                         .data = data,
                         .flags = endpoint.transmit_flags,
                         .context = context});
}

ssize_t inject_data(fid_ep* fid, const void* buffer, std::size_t length, std::uint64_t data, fi_addr_t target) {
  return send(*object_of<Endpoint>(fid),
              {.buffer = buffer, .length = length, .target = target, .has_data = true, .data = data, .inject = true});
}

}  // namespace

fi_ops_msg message_calls = {
    .size = sizeof(fi_ops_msg),
    .recv = receive_one,
    .recvv = receive_vector,
    .recvmsg = receive_message,
    .send = send_one,
    .sendv = send_vector,
    .sendmsg = send_message,
    .inject = inject,
    .senddata = send_data,
    .injectdata = inject_data,
};

}  // namespace dryfly::provider
