#include "provider/ep.hpp"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "provider/atomic.hpp"
#include "provider/attributes.hpp"
#include "provider/collective.hpp"
#include "provider/deferred.hpp"
#include "provider/device_memory.hpp"
#include "provider/eq.hpp"
#include "provider/group.hpp"
#include "provider/log.hpp"
#include "provider/memory.hpp"
#include "provider/mr.hpp"
#include "provider/msg.hpp"
#include "provider/operation_record.hpp"
#include "provider/peer.hpp"
#include "provider/process.hpp"
#include "provider/rma.hpp"
#include "provider/service.hpp"
#include "provider/tagged.hpp"
#include "provider/traffic_class.hpp"
#include "provider/unsupported.hpp"

namespace dryfly::provider {

namespace {

void unbind(Endpoint& endpoint) {
  if (endpoint.addresses != nullptr) --endpoint.addresses->users;
  for (const BoundQueue& bound : {endpoint.transmit, endpoint.receive}) {
    if (bound.queue != nullptr) --bound.queue->users;
  }
  for (Counter* counter : {endpoint.sends, endpoint.receives, endpoint.writes, endpoint.reads}) {
    if (counter != nullptr) --counter->users;
  }
  if (endpoint.events != nullptr) --endpoint.events->users;
}

// The simulator forgets an end-point's memory regions with it.
void detach_regions(const Endpoint& endpoint) {
  for (Region* region = endpoint.domain->regions; region != nullptr; region = region->next) {
    if (region->endpoint != &endpoint) continue;
    region->endpoint = nullptr;
    region->enabled = false;
  }
}

int close_endpoint(fid* fid) {
  const Session session;
  auto* endpoint = object_of<Endpoint>(fid);
  if (session && endpoint->enabled) {
    auto command = endpoint->command(wire::CommandKind::close_endpoint);
    session.channel().push(command, nullptr);
    if (endpoint->domain->has_nics()) give_back_endpoint(session.channel(), endpoint->domain->nic);
  }
  flush_operation_record();
  forget_work(*endpoint);
  session.state().operations.remove_all_of(*endpoint);
  detach_regions(*endpoint);
  forget_groups(*endpoint);
  session.state().endpoints[endpoint->index] = nullptr;
  unbind(*endpoint);
  --endpoint->domain->users;
  free(endpoint);
  return 0;
}

int bind_queue(BoundQueue& bound, CompletionQueue& queue, std::uint64_t flags) {
  if (bound.queue != nullptr) return -FI_EINVAL;
  bound = {queue.one, (flags & FI_SELECTIVE_COMPLETION) != 0};
  ++queue.one->users;
  return 0;
}

int bind_completion_queue(Endpoint& endpoint, CompletionQueue& queue, std::uint64_t flags) {
  constexpr std::uint64_t known = FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION;
  if ((flags & ~known) != 0) return -FI_EBADFLAGS;
  if ((flags & FI_TRANSMIT) != 0) {
    if (const int error = bind_queue(endpoint.transmit, queue, flags); error != 0) return error;
  }
  return (flags & FI_RECV) != 0 ? bind_queue(endpoint.receive, queue, flags) : 0;
}

int bind_counter(Endpoint& endpoint, Counter& counter, std::uint64_t flags) {
  if (counter.domain != endpoint.domain) return -FI_EINVAL;
  constexpr std::uint64_t remote = FI_REMOTE_READ | FI_REMOTE_WRITE;
  constexpr std::uint64_t known = FI_SEND | FI_RECV | FI_WRITE | FI_READ | remote;
  if ((flags & ~known) != 0) {
    log("fi_ep_bind: a counter cannot count 0x%llx", static_cast<unsigned long long>(flags & ~known));
    return -FI_ENOSYS;
  }
  // The machine's provider takes this and counts nothing: there it is a memory region that counts.
  if ((flags & remote) != 0) log("fi_ep_bind: accesses of others are counted by a counter of the memory region only");
  struct {
    std::uint64_t flag;
    Counter*& place;
  } const places[] = {
      {FI_SEND, endpoint.sends}, {FI_RECV, endpoint.receives}, {FI_WRITE, endpoint.writes}, {FI_READ, endpoint.reads}};
  for (const auto& [flag, place] : places) {
    if ((flags & flag) != 0 && place != nullptr) return -FI_EINVAL;
  }
  for (const auto& [flag, place] : places) {
    if ((flags & flag) == 0) continue;
    place = &counter;
    ++counter.users;
  }
  return 0;
}

// A connectionless end-point has no events but those of groups.
int bind_event_queue(Endpoint& endpoint, EventQueue& queue) {
  if ((endpoint.capabilities & FI_COLLECTIVE) == 0) return 0;
  if (endpoint.events != nullptr) return -FI_EINVAL;
  endpoint.events = &queue;
  ++queue.users;
  return 0;
}

int bind(fid* fid, struct fid* what, std::uint64_t flags) {
  const Session session;
  if (!session) return -FI_EOPBADSTATE;
  auto& endpoint = *object_of<Endpoint>(fid);
  // A counter may come later, as on the machine (prov/cxi: cxip_ep_bind_cntr).
  if (endpoint.enabled && what->fclass != FI_CLASS_CNTR) return -FI_EOPBADSTATE;
  switch (what->fclass) {
    case FI_CLASS_AV:
      if (endpoint.addresses != nullptr) return -FI_EINVAL;
      endpoint.addresses = object_of<AddressVector>(what);
      ++endpoint.addresses->users;
      return 0;
    case FI_CLASS_CQ:
      return bind_completion_queue(endpoint, *object_of<CompletionQueue>(what), flags);
    case FI_CLASS_CNTR:
      return bind_counter(endpoint, *object_of<Counter>(what), flags);
    case FI_CLASS_SRX_CTX:
      return peer::bind_shared_receive(endpoint, *what);
    case FI_CLASS_EQ:
      return bind_event_queue(endpoint, *object_of<EventQueue>(what));
    default:
      log("fi_ep_bind: objects of class %zu cannot be bound", what->fclass);
      return -FI_ENOSYS;
  }
}

int enable(const Session& session, Endpoint& endpoint) {
  if (endpoint.enabled) return 0;
  if (endpoint.addresses == nullptr) return -FI_ENOAV;
  auto command = endpoint.command(wire::CommandKind::open_endpoint);
  command.nic = endpoint.domain->nic;
  const Environment& environment = session.state().environment;
  const CompletionQueue* queue = endpoint.receive.queue;
  wire::EndpointSettings settings =
      environment.settings(endpoint.receive_size, queue != nullptr ? queue->size_asked : environment.queue_size);
  settings.network = endpoint.domain->auth_key.vni;
  if (endpoint.domain->has_nics()) {
    if (!granted_class(session.channel(), settings.network, endpoint.traffic_class) ||
        !granted_class(session.channel(), settings.network, settings.software_class)) {
      return -FI_EINVAL;
    }
    if (const int error = take_endpoint(session.channel(), endpoint.domain->nic); error != 0) return error;
  } else {
    settings.flags |= wire::endpoint_flag::in_memory;
  }
  if ((endpoint.capabilities & FI_FENCE) != 0) settings.flags |= wire::endpoint_flag::fences;
  command.flags |= wire::command_flag::payload_inline;
  command.length = sizeof settings;
  if (environment.rendezvous_given) session.channel().stage_up_to(environment.eager_max());
  session.channel().push(command, &settings);
  // The application may tell its peers the address by a way that the simulator does not see; it has to know the
  // end-point before their first message.
  session.channel().gate(wire::GateKind::drain);
  endpoint.enabled = true;
  constexpr std::uint64_t both_ways = FI_SEND | FI_RECV;
  const bool collective = (endpoint.capabilities & FI_COLLECTIVE) != 0;
  if (collective && (endpoint.capabilities & both_ways) == both_ways) endpoint.fid.collective = &collective_calls;
  return endpoint.shared != nullptr ? peer::watch_arrivals(session, endpoint) : 0;
}

int change_flags(Endpoint& endpoint, std::uint64_t flags) {
  if ((flags & FI_TRANSMIT) != 0) endpoint.transmit_flags = flags & transmit_flags;
  if ((flags & FI_RECV) != 0) endpoint.receive_flags = flags & receive_flags;
  return 0;
}

int control(fid* fid, int what, void* argument) {
  const Session session;
  if (!session) return -FI_EOPBADSTATE;
  auto& endpoint = *object_of<Endpoint>(fid);
  auto* flags = static_cast<std::uint64_t*>(argument);
  switch (what) {
    case FI_ENABLE:
      return enable(session, endpoint);
    case FI_SETOPSFLAG:
      return change_flags(endpoint, *flags);
    case FI_GETOPSFLAG:
      *flags = (*flags & FI_TRANSMIT) != 0 ? endpoint.transmit_flags : endpoint.receive_flags;
      return 0;
    default:
      return -FI_ENOSYS;
  }
}

int get_name(fid_t fid, void* address, std::size_t* length) {
  const Session session;
  if (!session) return -FI_EOPBADSTATE;
  const auto& endpoint = *object_of<Endpoint>(fid);
  const Address own{wire::make_address(session.channel().rank(), endpoint.index), endpoint.domain->nic};
  const std::size_t room = *length;
  *length = sizeof own;
  if (address == nullptr || room < sizeof own) return -FI_ETOOSMALL;
  memcpy(address, &own, sizeof own);
  return 0;
}

ssize_t cancel(fid_t fid, void* context) {
  const Session session;
  if (!session) return -FI_EOPBADSTATE;
  auto& endpoint = *object_of<Endpoint>(fid);
  if (endpoint.shared != nullptr) return -FI_ENOSYS;  // the receives are the owner's
  Operations& operations = session.state().operations;
  const Operation* operation = operations.find_by_context(endpoint, OperationKind::receive, context);
  if (operation == nullptr) return -FI_ENOENT;
  auto command = endpoint.command(wire::CommandKind::cancel);
  command.context = operations.id_of(*operation);
  session.channel().push(command, nullptr);
  return 0;
}

// FI_OPT_CUDA_API_PERMITTED of libfabric 1.18, which older headers lack.
constexpr int cuda_calls_permitted = FI_OPT_XPU_TRIGGER + 1;

int get_option(fid_t fid, int level, int option, void* value, std::size_t* length) {
  if (level != FI_OPT_ENDPOINT) return -FI_ENOPROTOOPT;
  const Session session;
  const auto& endpoint = *object_of<Endpoint>(fid);
  const bool permitted = !endpoint.calls_no_runtime || device_interface() != FI_HMEM_CUDA;
  const bool is_size = option == FI_OPT_MIN_MULTI_RECV;
  if (!is_size && option != cuda_calls_permitted) return -FI_ENOPROTOOPT;
  const std::size_t bytes = is_size ? sizeof(std::size_t) : sizeof(bool);
  if (*length < bytes) return -FI_ETOOSMALL;
  memcpy(value, is_size ? static_cast<const void*>(&endpoint.min_multi_receive) : &permitted, bytes);
  *length = bytes;
  return 0;
}

// As cxip_ep_setopt_priv: who forbids it the runtime needs gdrcopy, and FI_CXI_FORCE_DEV_REG_COPY cannot be undone.
int permit_cuda_calls(const Session& session, Endpoint& endpoint, bool permitted) {
  const Environment& environment = session.state().environment;
  if (device_interface() != FI_HMEM_CUDA || !knows_devices(environment)) {
    log("fi_setopt: FI_OPT_CUDA_API_PERMITTED cannot be set where there is no CUDA");
    return -FI_EOPNOTSUPP;
  }
  if (!permitted && !has_gdrcopy(environment)) return -FI_EOPNOTSUPP;
  endpoint.calls_no_runtime = environment.device_memory.no_runtime || !permitted;
  return 0;
}

int set_option(fid_t fid, int level, int option, const void* value, std::size_t length) {
  if (level != FI_OPT_ENDPOINT) return -FI_ENOPROTOOPT;
  const Session session;
  auto& endpoint = *object_of<Endpoint>(fid);
  if (option == cuda_calls_permitted) {
    if (length != sizeof(bool)) return -FI_EINVAL;
    return permit_cuda_calls(session, endpoint, *static_cast<const bool*>(value));
  }
  if (option != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  if (length != sizeof(std::size_t)) return -FI_EINVAL;
  memcpy(&endpoint.min_multi_receive, value, length);
  return 0;
}

fi_ops object_calls = {
    .size = sizeof(fi_ops),
    .close = close_endpoint,
    .bind = bind,
    .control = control,
    .ops_open = unsupported,
};

fi_ops_ep endpoint_calls = {
    .size = sizeof(fi_ops_ep),
    .cancel = cancel,
    .getopt = get_option,
    .setopt = set_option,
    .tx_ctx = unsupported,
    .rx_ctx = unsupported,
    .rx_size_left = unsupported,
    .tx_size_left = unsupported,
};

fi_ops_cm name_calls = {
    .size = sizeof(fi_ops_cm),
    .setname = unsupported,
    .getname = get_name,
    .getpeer = unsupported,
    .connect = unsupported,
    .listen = unsupported,
    .accept = unsupported,
    .reject = unsupported,
    .shutdown = unsupported,
    .join = join_group,
};

// The lowest free index, so that addresses do not depend on anything but the order of calls.
bool take_index(Process& state, Endpoint& endpoint) {
  auto* const end = std::end(state.endpoints);
  auto* const place = std::find(state.endpoints, end, nullptr);
  if (place == end) return false;
  *place = &endpoint;
  endpoint.index = static_cast<std::uint32_t>(place - state.endpoints);
  return true;
}

}  // namespace

wire::Command Endpoint::command(wire::CommandKind kind) const {
  wire::Command command{};
  command.kind = kind;
  command.endpoint = index;
  command.traffic_class = traffic_class;
  return command;
}

Operation* begin_operation(Process& state, Endpoint& endpoint, OperationKind kind, const Completing& completing) {
  Operation* operation = state.operations.add(kind);
  if (operation == nullptr) return nullptr;
  operation->endpoint = &endpoint;
  operation->queue = completing.bound.queue;
  operation->counter = counter_of_work() != nullptr ? counter_of_work() : completing.counter;
  operation->context = completing.context;
  operation->flags = completing.completion_flags;
  const bool asked = !completing.bound.selective || (completing.call_flags & FI_COMPLETION) != 0;
  operation->reported = asked && !completing.silent;
  if (operation->counter != nullptr) ++operation->counter->outstanding;
  return operation;
}

int open_endpoint(fid_domain* domain, fi_info* info, fid_ep** fid, void* context) {
  if (info->ep_attr == nullptr || info->ep_attr->type != FI_EP_RDM) return -FI_EINVAL;
  if (info->ep_attr->tx_ctx_cnt == FI_SHARED_CONTEXT || info->ep_attr->rx_ctx_cnt == FI_SHARED_CONTEXT) {
    return -FI_ENOSYS;
  }
  if (!auth_key_accepted(info->ep_attr->auth_key, info->ep_attr->auth_key_size) ||
      !same_auth_key(object_of<Domain>(domain)->auth_key, info->ep_attr->auth_key)) {
    return -FI_EINVAL;
  }
  std::uint8_t traffic_class = 0;
  const std::uint32_t label = info->tx_attr != nullptr ? info->tx_attr->tclass : std::uint32_t{FI_TC_UNSPEC};
  if (!traffic_class_of(label, object_of<Domain>(domain)->traffic_class, traffic_class)) return -FI_EINVAL;
  auto* endpoint = allocate<Endpoint>();
  if (endpoint == nullptr) return -FI_ENOMEM;
  const Session session;
  if (!session || !take_index(session.state(), *endpoint)) {
    log("fi_endpoint: a rank has at most %u end-points", wire::endpoint_count_max);
    free(endpoint);
    return session ? -FI_ENOSPC : -FI_EOPBADSTATE;
  }
  endpoint->fid.fid.fclass = FI_CLASS_EP;
  endpoint->fid.fid.context = context;
  endpoint->fid.fid.ops = &object_calls;
  endpoint->fid.ops = &endpoint_calls;
  endpoint->fid.cm = &name_calls;
  endpoint->fid.msg = &message_calls;
  endpoint->fid.rma = object_of<Domain>(domain)->writes_data ? &rma_calls_with_data : &rma_calls;
  endpoint->fid.tagged = &tagged_calls;
  endpoint->fid.atomic = &atomic_calls;
  endpoint->fid.collective = &no_collective_calls;
  endpoint->domain = object_of<Domain>(domain);
  endpoint->capabilities = info->caps;
  endpoint->order = info->tx_attr != nullptr ? info->tx_attr->msg_order : 0;
  endpoint->transmit_flags = info->tx_attr != nullptr ? info->tx_attr->op_flags : 0;
  endpoint->receive_flags = info->rx_attr != nullptr ? info->rx_attr->op_flags : 0;
  endpoint->traffic_class = traffic_class;
  endpoint->min_multi_receive = min_multi_receive;
  endpoint->calls_no_runtime = session.state().environment.device_memory.no_runtime;
  endpoint->receive_size = session.state().environment.receive_size;
  if (info->rx_attr != nullptr && info->rx_attr->size != 0) endpoint->receive_size = info->rx_attr->size;
  ++endpoint->domain->users;
  *fid = &endpoint->fid;
  return 0;
}

int open_endpoint_with_flags(fid_domain* domain, fi_info* info, fid_ep** endpoint, std::uint64_t flags, void* context) {
  if (flags != 0) return -FI_EBADFLAGS;
  return open_endpoint(domain, info, endpoint, context);
}

}  // namespace dryfly::provider
