#include "provider/collective.hpp"

#include <rdma/fi_errno.h>
#include <string.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "provider/group.hpp"
#include "provider/log.hpp"
#include "provider/memory.hpp"
#include "provider/unsupported.hpp"
#include "wire/reduction.hpp"

namespace dryfly::provider {

namespace {

using wire::Contribution;
using wire::ReductionOp;

// rdma/fi_cxi_ext.h of libfabric's cxi provider.
constexpr int op_extremes = 32;      // FI_CXI_MINMAXLOC
constexpr int op_reproducible = 33;  // FI_CXI_REPSUM
constexpr std::uint64_t pre_reduced = FI_SOURCE;
constexpr int error_integer_overflow = 1026;
constexpr int error_op_mismatch = 1028;
constexpr int error_reduction_other = 1030;

constexpr std::size_t members_max = (std::size_t{1} << 20) - 1;  // addresses of NICs have 20 bits

// As this thread rounds: 0 to 3, and 4 to 7 with results flushed to zero.
unsigned rounding_way() {
#if defined(__x86_64__)
  return _mm_getcsr() >> 13 & 7U;
#else
  return 0;
#endif
}

int code(ReductionOp op) { return static_cast<int>(op); }

int bitwise(int operation) {
  if (operation == FI_BOR) return code(ReductionOp::bit_or);
  if (operation == FI_BAND) return code(ReductionOp::bit_and);
  return operation == FI_BXOR ? code(ReductionOp::bit_xor) : -FI_EOPNOTSUPP;
}

int arithmetic(int operation, bool of_doubles) {
  switch (operation) {
    case FI_MIN:
      return code(of_doubles ? ReductionOp::double_min : ReductionOp::int_min);
    case FI_MAX:
      return code(of_doubles ? ReductionOp::double_max : ReductionOp::int_max);
    case FI_SUM:
      return of_doubles ? code(ReductionOp::double_sum) + static_cast<int>(rounding_way()) : code(ReductionOp::int_sum);
    case op_extremes:
      return code(of_doubles ? ReductionOp::double_extremes : ReductionOp::int_extremes);
    case op_reproducible:
      return of_doubles ? code(ReductionOp::reproducible_sum) : -FI_EOPNOTSUPP;
    default:
      return -FI_EOPNOTSUPP;
  }
}

// What the engines call it, negative where they have it not. Bits of any integer but a signed one of 64 bits,
// arithmetic of signed integers of 64 bits and of doubles.
int engine_op(int operation, int type) {
  switch (type) {
    case FI_INT8:
    case FI_UINT8:
    case FI_INT16:
    case FI_UINT16:
    case FI_INT32:
    case FI_UINT32:
    case FI_UINT64:
      return bitwise(operation);
    case FI_INT64:
      return arithmetic(operation, false);
    case FI_DOUBLE:
      return arithmetic(operation, true);
    default:
      return -FI_EOPNOTSUPP;
  }
}

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
      return 8;
    default:
      return 0;
  }
}

// Of the payload, or an error.
ssize_t payload_bytes(int op, int type, const void* buffer, std::size_t count) {
  if (op < 0 || buffer == nullptr || count == 0) return -FI_EINVAL;
  std::size_t size = bytes_of(type);
  if (size == 0) return -FI_EOPNOTSUPP;
  const bool whole = op == code(ReductionOp::int_extremes) || op == code(ReductionOp::double_extremes) ||
                     op == code(ReductionOp::reproducible_sum);
  if (whole) size *= wire::reduction_words;
  return count <= wire::reduction_bytes_max / size ? static_cast<ssize_t>(count * size) : -FI_EINVAL;
}

// Of the result: a reproducible sum is one number.
std::size_t result_bytes(int op, ssize_t payload) {
  return op == code(ReductionOp::reproducible_sum) ? sizeof(double) : static_cast<std::size_t>(payload);
}

Contribution contribution_of(int op, const void* data, ssize_t bytes, std::uint64_t flags) {
  Contribution made;
  if ((flags & pre_reduced) != 0) {
    memcpy(&made, data, sizeof made);
    made.count = 1;
  } else {
    wire::start_contribution(made, static_cast<std::uint8_t>(op), data, result_bytes(op, bytes));
  }
  return made;
}

void accumulate(int op, const void* data, void* accumulator, ssize_t bytes, std::uint64_t flags) {
  Contribution all;
  memcpy(&all, accumulator, sizeof all);
  wire::combine(all, contribution_of(op, data, bytes, flags));
  memcpy(accumulator, &all, sizeof all);
}

ssize_t find_joined(const Endpoint& endpoint, fi_addr_t address, Group*& group) {
  group = find_group(endpoint, address);
  if (group == nullptr) {
    log("a collective's address is of no group of end-point %u", endpoint.index);
    return -FI_EINVAL;
  }
  return group->joined ? 0 : -FI_EOPBADSTATE;
}

ssize_t contribute(const Session& session, Group& group, const Contribution& part, void* result, std::size_t bytes,
                   void* context) {
  if (group.begun - group.ended == reductions_at_once) return -FI_EAGAIN;
  Endpoint& endpoint = *group.endpoint;
  // It is reported whatever the queue selects, without flags, and counted nowhere, as the cxi provider does.
  const Completing completing{.bound = {endpoint.transmit.queue, false},
                              .counter = nullptr,
                              .call_flags = 0,
                              .completion_flags = 0,
                              .context = context,
                              .silent = false};
  Operation* operation = begin_operation(session.state(), endpoint, OperationKind::transfer, completing);
  if (operation == nullptr) return -FI_EAGAIN;
  operation->buffer = result;
  auto command = endpoint.command(wire::CommandKind::contribute);
  command.flags |= wire::command_flag::payload_inline;
  if (session.state().environment.collective_dma) command.flags |= wire::command_flag::by_dma;
  command.context = session.state().operations.id_of(*operation);
  command.group = group.number;
  command.member = group.place;
  command.sequence = group.begun++;
  command.result_bytes = result != nullptr ? bytes : 0;
  command.length = sizeof part;
  session.channel().charge(session.channel().header().costs.rma_ps);
  session.channel().push(command, &part);
  return 0;
}

ssize_t barrier(fid_ep* fid, fi_addr_t address, void* context) {
  const Session session;
  if (!session) return -FI_EOPBADSTATE;
  Group* group = nullptr;
  if (const ssize_t error = find_joined(*object_of<Endpoint>(fid), address, group); error != 0) return error;
  return contribute(session, *group, contribution_of(code(ReductionOp::barrier), nullptr, 0, 0), nullptr, 0, context);
}

ssize_t broadcast(fid_ep* fid, void* buffer, std::size_t count, void*, fi_addr_t address, fi_addr_t root,
                  fi_datatype type, std::uint64_t flags, void* context) {
  if ((flags & (FI_MORE | pre_reduced)) != 0) return -FI_EINVAL;
  const int op = code(ReductionOp::bit_or);
  const ssize_t bytes = payload_bytes(op, type, buffer, count);
  if (bytes < 0) return -FI_EINVAL;
  const Session session;
  if (!session) return -FI_EOPBADSTATE;
  Group* group = nullptr;
  if (const ssize_t error = find_joined(*object_of<Endpoint>(fid), address, group); error != 0) return error;
  const void* data = group->own == root ? buffer : nullptr;
  return contribute(session, *group, contribution_of(op, data, bytes, 0), buffer, static_cast<std::size_t>(bytes),
                    context);
}

// Allreduce, and reduce, whose result is optional where it is not wanted.
ssize_t reduce_to(fid_ep* fid, const void* buffer, std::size_t count, void* result, fi_addr_t address,
                  const fi_addr_t* root, fi_datatype type, fi_op operation, std::uint64_t flags, void* context) {
  const int op = engine_op(operation, type);
  const ssize_t bytes = payload_bytes(op, type, buffer, count);
  if (bytes < 0) return bytes;
  if (result == nullptr && (root == nullptr || (flags & FI_MORE) != 0)) return -FI_EINVAL;
  if ((flags & FI_MORE) != 0) {
    accumulate(op, buffer, result, bytes, flags);
    return 0;
  }
  const Session session;
  if (!session) return -FI_EOPBADSTATE;
  Group* group = nullptr;
  if (const ssize_t error = find_joined(*object_of<Endpoint>(fid), address, group); error != 0) return error;
  if (result == nullptr && group->own == *root) return -FI_EINVAL;
  return contribute(session, *group, contribution_of(op, buffer, bytes, flags), result, result_bytes(op, bytes),
                    context);
}

ssize_t reduce(fid_ep* fid, const void* buffer, std::size_t count, void*, void* result, void*, fi_addr_t address,
               fi_addr_t root, fi_datatype type, fi_op operation, std::uint64_t flags, void* context) {
  return reduce_to(fid, buffer, count, result, address, &root, type, operation, flags, context);
}

ssize_t allreduce(fid_ep* fid, const void* buffer, std::size_t count, void*, void* result, void*, fi_addr_t address,
                  fi_datatype type, fi_op operation, std::uint64_t flags, void* context) {
  return reduce_to(fid, buffer, count, result, address, nullptr, type, operation, flags, context);
}

// Which types an operation has when one asks, which is not quite what the calls take.
bool queried(int operation, int type, fi_atomic_attr& limits) {
  limits.size = bytes_of(type);
  switch (operation) {
    case FI_BOR:
    case FI_BAND:
    case FI_BXOR:
      if (limits.size == 0 || type == FI_FLOAT || type == FI_DOUBLE) return false;
      break;
    case FI_MIN:
    case FI_MAX:
    case FI_SUM:
      if (type != FI_INT64 && type != FI_DOUBLE) return false;
      break;
    case op_extremes:
      limits = {.count = 1, .size = wire::reduction_bytes_max};
      return true;
    case op_reproducible:
      limits = {.count = 1, .size = sizeof(double)};
      return true;
    default:
      return false;
  }
  limits.count = wire::reduction_bytes_max / limits.size;
  return true;
}

}  // namespace

int query_collective(fid_domain*, fi_collective_op collective, fi_collective_attr* attributes, std::uint64_t flags) {
  if (attributes == nullptr) return collective == FI_BARRIER ? 0 : -FI_EINVAL;
  if (flags != 0) return -FI_EOPNOTSUPP;
  attributes->max_members = members_max;
  switch (collective) {
    case FI_BARRIER:
      attributes->datatype_attr = {};
      return 0;
    case FI_BROADCAST:
      attributes->datatype_attr.size = bytes_of(attributes->datatype);
      if (attributes->datatype_attr.size == 0) return -FI_EOPNOTSUPP;
      attributes->datatype_attr.count = wire::reduction_bytes_max / attributes->datatype_attr.size;
      return 0;
    case FI_REDUCE:
    case FI_ALLREDUCE:
      return queried(attributes->op, attributes->datatype, attributes->datatype_attr) ? 0 : -FI_EOPNOTSUPP;
    default:
      return -FI_EOPNOTSUPP;
  }
}

void set_reduction_error(const wire::Event& event, Completion& completion) {
  const auto status = static_cast<wire::ReductionStatus>(event.status);
  if (event.error != 0) {
    completion.provider_error = error_reduction_other;
  } else if (status == wire::ReductionStatus::integer_overflow) {
    completion.provider_error = error_integer_overflow;
  } else if (status == wire::ReductionStatus::op_mismatch) {
    completion.provider_error = error_op_mismatch;
  }
  // With the sign that libfabric's cxi gives it.
  completion.error = completion.provider_error != 0 ? -FI_EOTHER : 0;
}

fi_ops_collective collective_calls = {
    .size = sizeof(fi_ops_collective),
    .barrier = barrier,
    .broadcast = broadcast,
    .alltoall = unsupported,
    .allreduce = allreduce,
    .allgather = unsupported,
    .reduce_scatter = unsupported,
    .reduce = reduce,
    .scatter = unsupported,
    .gather = unsupported,
    .msg = unsupported,
    .barrier2 = unsupported,
};

fi_ops_collective no_collective_calls = {
    .size = sizeof(fi_ops_collective),
    .barrier = unsupported,
    .broadcast = unsupported,
    .alltoall = unsupported,
    .allreduce = unsupported,
    .allgather = unsupported,
    .reduce_scatter = unsupported,
    .reduce = unsupported,
    .scatter = unsupported,
    .gather = unsupported,
    .msg = unsupported,
    .barrier2 = unsupported,
};

}  // namespace dryfly::provider
