#include "provider/atomic.hpp"

#include <rdma/fi_errno.h>
#include <string.h>

#include "provider/attributes.hpp"
#include "provider/deferred.hpp"
#include "provider/ep.hpp"
#include "provider/log.hpp"
#include "provider/memory.hpp"
#include "provider/mr.hpp"
#include "provider/process.hpp"
#include "provider/transfer.hpp"

namespace dryfly::provider {

namespace {

enum class Form { update, fetch, compare };

constexpr std::size_t elements_max = 1;
constexpr std::size_t element_bytes_max = 16;

constexpr std::uint32_t bits(int first, int last) { return ((2U << last) - 1) & ~((1U << first) - 1); }
constexpr std::uint32_t integers = bits(FI_INT8, FI_UINT64);
constexpr std::uint32_t reals = bits(FI_FLOAT, FI_DOUBLE);
constexpr std::uint32_t complexes = bits(FI_FLOAT_COMPLEX, FI_DOUBLE_COMPLEX);
constexpr int int128 = 14;  // FI_INT128 and FI_UINT128, which libfabric 1.17 and 2 declare differently
constexpr int types_end = int128 + 2;
constexpr int operations_end = FI_MSWAP + 1;
constexpr std::uint32_t wide_integers = bits(int128, int128 + 1);

// The types that an operation takes in a form, one bit each.
std::uint32_t types_of(Form form, int operation) {
  if (form == Form::compare) {
    switch (operation) {
      case FI_CSWAP:
        return integers | reals | complexes | wide_integers;
      case FI_CSWAP_NE:
        return integers | reals | complexes;
      case FI_CSWAP_LE:
      case FI_CSWAP_LT:
      case FI_CSWAP_GE:
      case FI_CSWAP_GT:
        return integers | reals;
      case FI_MSWAP:
        return integers;
      default:
        return 0;
    }
  }
  switch (operation) {
    case FI_MIN:
    case FI_MAX:
      return integers | reals;
    case FI_SUM:
    case FI_ATOMIC_WRITE:
      return integers | reals | complexes;
    case FI_LOR:
    case FI_LAND:
    case FI_LXOR:
    case FI_BOR:
    case FI_BAND:
    case FI_BXOR:
      return integers;
    case FI_ATOMIC_READ:
      return form == Form::fetch ? integers | reals | complexes : 0;
    default:
      return 0;
  }
}

// 0 for a type that no operation takes.
std::size_t bytes_of(int type) {
  switch (type) {
    case FI_INT8:
    case FI_UINT8:
      return 1;
    case FI_INT16:
    case FI_UINT16:
      return 2;
    case FI_INT32:
    case FI_UINT32:
    case FI_FLOAT:
      return 4;
    case FI_INT64:
    case FI_UINT64:
    case FI_DOUBLE:
    case FI_FLOAT_COMPLEX:
      return 8;
    case FI_DOUBLE_COMPLEX:
    case int128:
    case int128 + 1:
      return element_bytes_max;
    default:
      return 0;
  }
}

int valid(Form form, int type, int operation, std::size_t* count) {
  if (type < 0 || type >= types_end || operation < 0 || operation >= operations_end) return -FI_EINVAL;
  if (bytes_of(type) == 0 || (types_of(form, operation) >> type & 1) == 0) return -FI_EOPNOTSUPP;
  if (count != nullptr) *count = elements_max;
  return 0;
}

struct AtomicCall {
  Form form = Form::update;
  const void* operand = nullptr;
  const void* compare = nullptr;
  void* result = nullptr;
  std::size_t count = 0;
  fi_addr_t target = FI_ADDR_UNSPEC;
  std::uint64_t offset = 0;
  std::uint64_t key = 0;
  fi_datatype type = FI_INT8;
  fi_op operation = FI_MIN;
  std::uint64_t flags = 0;
  void* context = nullptr;
  bool inject = false;
};

wire::CommandKind kind_of(Form form) {
  if (form == Form::update) return wire::CommandKind::atomic;
  return form == Form::fetch ? wire::CommandKind::fetch_atomic : wire::CommandKind::compare_atomic;
}

// Those of injected calls are copied into a buffer of the provider's.
bool has_operands_of_its_own(const AtomicCall& call) {
  return !call.inject && (call.flags & FI_INJECT) == 0 && call.operation != FI_ATOMIC_READ;
}

ssize_t perform(Endpoint& endpoint, const AtomicCall& call) {
  const Session session;
  if (!session || !endpoint.enabled) return -FI_EOPBADSTATE;
  session.channel().boundary(rank::Boundary::atomic, 0);
  constexpr std::uint64_t known = transmit_flags | FI_MORE;
  if ((call.flags & ~known) != 0) {
    log("atomic: flags 0x%llx are not offered", static_cast<unsigned long long>(call.flags & ~known));
    return -FI_EBADFLAGS;
  }
  std::size_t most = 0;
  if (const int error = valid(call.form, call.type, call.operation, &most); error != 0) return error;
  if (call.count == 0 || call.count > most) return -FI_EINVAL;
  if (refuses(endpoint, call.operand) || refuses(endpoint, call.compare)) return -FI_EOPNOTSUPP;

  auto command = endpoint.command(kind_of(call.form));
  if (!endpoint.peer(call.target, command.peer)) return -FI_EINVAL;
  command.remote_offset = call.offset;
  command.key = call.key;
  command.flags |= completion_level(call.flags);
  if (!take_fence(endpoint, call.flags, command)) return -FI_EINVAL;
  command.atomic_op = static_cast<std::uint8_t>(call.operation);
  command.atomic_type = static_cast<std::uint8_t>(call.type);
  const bool fetches = call.form != Form::update;
  const Completing completing{
      .bound = endpoint.transmit,
      .counter = fetches ? endpoint.reads : endpoint.writes,
      .call_flags = call.flags,
      .completion_flags = FI_ATOMIC | (fetches ? std::uint64_t{FI_READ} : std::uint64_t{FI_WRITE}),
      .context = call.context,
      .silent = call.inject};
  Operation* operation = begin_operation(session.state(), endpoint, OperationKind::transfer, completing);
  if (operation == nullptr) return -FI_ENOMEM;

  // The payload: operands, then what they are compared with. An atomic read has operands of no meaning.
  const std::size_t bytes = call.count * bytes_of(call.type);
  char payload[2 * elements_max * element_bytes_max] = {};
  std::size_t length = bytes;
  if (call.operation != FI_ATOMIC_READ) memcpy(payload, call.operand, bytes);
  if (call.form == Form::compare) {
    memcpy(payload + bytes, call.compare, bytes);
    command.operand_bytes = bytes;
    length += bytes;
  }
  operation->buffer = call.result;
  operation->length = bytes;
  command.buffer = reinterpret_cast<std::uint64_t>(call.result);
  constexpr bool stable = false;
  if (has_operands_of_its_own(call) && fetches_operands(session, *operation, command)) {
    command.flags |= wire::command_flag::by_dma;
    check_mapping(session, *endpoint.domain, gpu_of(call.operand) != 0);
    register_buffer(session, *endpoint.domain, call.operand, bytes);
  } else if (endpoint.domain->knows_gpus && call.operation != FI_ATOMIC_READ) {
    copy_from_device(session, endpoint, call.operand, bytes);
  }
  if (endpoint.domain->knows_gpus && call.form == Form::compare)
    copy_from_device(session, endpoint, call.compare, bytes);
  const wire::HostCosts& costs = session.channel().header().costs;
  return push_transfer(session, *operation, command, payload, length, stable,
                       fetches ? costs.rma_fetched_ps : costs.rma_ps);
}

// The vector forms: one element list each.
bool single(const fi_ioc* parts, std::size_t count) { return count == 1 && parts != nullptr; }

const void* first_address(const fi_ioc* parts) { return parts != nullptr ? parts->addr : nullptr; }

ssize_t write(fid_ep* fid, const void* operand, std::size_t count, void*, fi_addr_t target, std::uint64_t offset,
              std::uint64_t key, fi_datatype type, fi_op operation, void* context) {
  auto& endpoint = *object_of<Endpoint>(fid);
  return perform(endpoint, {.operand = operand,
                            .count = count,
                            .target = target,
                            .offset = offset,
                            .key = key,
                            .type = type,
                            .operation = operation,
                            .flags = endpoint.transmit_flags,
                            .context = context});
}

ssize_t write_vector(fid_ep* fid, const fi_ioc* parts, void**, std::size_t count, fi_addr_t target,
                     std::uint64_t offset, std::uint64_t key, fi_datatype type, fi_op operation, void* context) {
  if (!single(parts, count)) return -FI_EINVAL;
  return write(fid, parts->addr, parts->count, nullptr, target, offset, key, type, operation, context);
}

// The three message forms. False when the message is not about exactly one element list at each place.
bool from_message(const fi_msg_atomic& message, std::uint64_t flags, AtomicCall& call) {
  if (message.rma_iov_count != 1) return false;
  const bool reads_only = message.op == FI_ATOMIC_READ;
  if (!reads_only && !single(message.msg_iov, message.iov_count)) return false;
  call.operand = first_address(message.msg_iov);
  call.count = message.rma_iov->count;
  if (!reads_only && message.msg_iov->count != call.count) return false;
  call.target = message.addr;
  call.offset = message.rma_iov->addr;
  call.key = message.rma_iov->key;
  call.type = message.datatype;
  call.operation = message.op;
  call.flags = flags;
  call.context = message.context;
  return true;
}

ssize_t write_message(fid_ep* fid, const fi_msg_atomic* message, std::uint64_t flags) {
  AtomicCall call;
  if (!from_message(*message, flags, call)) return -FI_EINVAL;
  return perform(*object_of<Endpoint>(fid), call);
}

ssize_t inject(fid_ep* fid, const void* operand, std::size_t count, fi_addr_t target, std::uint64_t offset,
               std::uint64_t key, fi_datatype type, fi_op operation) {
  return perform(*object_of<Endpoint>(fid), {.operand = operand,
                                             .count = count,
                                             .target = target,
                                             .offset = offset,
                                             .key = key,
                                             .type = type,
                                             .operation = operation,
                                             .inject = true});
}

ssize_t fetch(fid_ep* fid, const void* operand, std::size_t count, void*, void* result, void*, fi_addr_t target,
              std::uint64_t offset, std::uint64_t key, fi_datatype type, fi_op operation, void* context) {
  auto& endpoint = *object_of<Endpoint>(fid);
  return perform(endpoint, {.form = Form::fetch,
                            .operand = operand,
                            .result = result,
                            .count = count,
                            .target = target,
                            .offset = offset,
                            .key = key,
                            .type = type,
                            .operation = operation,
                            .flags = endpoint.transmit_flags,
                            .context = context});
}

ssize_t fetch_vector(fid_ep* fid, const fi_ioc* parts, void**, std::size_t count, fi_ioc* results, void**,
                     std::size_t result_count, fi_addr_t target, std::uint64_t offset, std::uint64_t key,
                     fi_datatype type, fi_op operation, void* context) {
  if (!single(results, result_count)) return -FI_EINVAL;
  if (operation != FI_ATOMIC_READ && (!single(parts, count) || parts->count != results->count)) return -FI_EINVAL;
  return fetch(fid, first_address(parts), results->count, nullptr, results->addr, nullptr, target, offset, key, type,
               operation, context);
}

ssize_t fetch_message(fid_ep* fid, const fi_msg_atomic* message, fi_ioc* results, void**, std::size_t result_count,
                      std::uint64_t flags) {
  AtomicCall call{.form = Form::fetch};
  if (!from_message(*message, flags, call) || !single(results, result_count)) return -FI_EINVAL;
  call.result = results->addr;
  return perform(*object_of<Endpoint>(fid), call);
}

ssize_t compare(fid_ep* fid, const void* operand, std::size_t count, void*, const void* compared, void*, void* result,
                void*, fi_addr_t target, std::uint64_t offset, std::uint64_t key, fi_datatype type, fi_op operation,
                void* context) {
  auto& endpoint = *object_of<Endpoint>(fid);
  return perform(endpoint, {.form = Form::compare,
                            .operand = operand,
                            .compare = compared,
                            .result = result,
                            .count = count,
                            .target = target,
                            .offset = offset,
                            .key = key,
                            .type = type,
                            .operation = operation,
                            .flags = endpoint.transmit_flags,
                            .context = context});
}

ssize_t compare_vector(fid_ep* fid, const fi_ioc* parts, void**, std::size_t count, const fi_ioc* compared, void**,
                       std::size_t compare_count, fi_ioc* results, void**, std::size_t result_count, fi_addr_t target,
                       std::uint64_t offset, std::uint64_t key, fi_datatype type, fi_op operation, void* context) {
  if (!single(parts, count) || !single(compared, compare_count) || !single(results, result_count)) return -FI_EINVAL;
  if (compared->count != parts->count || results->count != parts->count) return -FI_EINVAL;
  return compare(fid, parts->addr, parts->count, nullptr, compared->addr, nullptr, results->addr, nullptr, target,
                 offset, key, type, operation, context);
}

ssize_t compare_message(fid_ep* fid, const fi_msg_atomic* message, const fi_ioc* compared, void**,
                        std::size_t compare_count, fi_ioc* results, void**, std::size_t result_count,
                        std::uint64_t flags) {
  AtomicCall call{.form = Form::compare};
  if (!from_message(*message, flags, call) || !single(compared, compare_count) || !single(results, result_count)) {
    return -FI_EINVAL;
  }
  call.compare = compared->addr;
  call.result = results->addr;
  return perform(*object_of<Endpoint>(fid), call);
}

int write_valid(fid_ep*, fi_datatype type, fi_op operation, std::size_t* count) {
  return valid(Form::update, type, operation, count);
}

int fetch_valid(fid_ep*, fi_datatype type, fi_op operation, std::size_t* count) {
  return valid(Form::fetch, type, operation, count);
}

int compare_valid(fid_ep*, fi_datatype type, fi_op operation, std::size_t* count) {
  return valid(Form::compare, type, operation, count);
}

}  // namespace

int query_atomic(fid_domain*, fi_datatype type, fi_op operation, fi_atomic_attr* attributes, std::uint64_t flags) {
  if ((flags & ~std::uint64_t{FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC}) != 0) return -FI_EBADFLAGS;
  Form form = Form::update;
  if ((flags & FI_FETCH_ATOMIC) != 0) form = Form::fetch;
  if ((flags & FI_COMPARE_ATOMIC) != 0) form = Form::compare;
  const int error = valid(form, type, operation, &attributes->count);
  if (error == 0) attributes->size = bytes_of(type);
  return error;
}

fi_ops_atomic atomic_calls = {
    .size = sizeof(fi_ops_atomic),
    .write = write,
    .writev = write_vector,
    .writemsg = write_message,
    .inject = inject,
    .readwrite = fetch,
    .readwritev = fetch_vector,
    .readwritemsg = fetch_message,
    .compwrite = compare,
    .compwritev = compare_vector,
    .compwritemsg = compare_message,
    .writevalid = write_valid,
    .readwritevalid = fetch_valid,
    .compwritevalid = compare_valid,
};

}  // namespace dryfly::provider
