#include "provider/mr.hpp"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "provider/attributes.hpp"
#include "provider/log.hpp"
#include "provider/memory.hpp"
#include "provider/process.hpp"
#include "provider/unsupported.hpp"

namespace dryfly::provider {

namespace {

void tell(const Session& session, const Region& region, wire::CommandKind kind) {
  auto command = region.endpoint->command(kind);
  command.key = region.fid.key;
  command.buffer = region.start;
  command.length = region.length;
  command.data = region.access;
  if (region.counter != nullptr) command.flags |= wire::command_flag::tells;
  session.channel().push(command, nullptr);
}

int close_region(fid* fid) {
  const Session session;
  auto* region = object_of<Region>(fid);
  if (session && region->enabled) tell(session, *region, wire::CommandKind::close_memory_region);
  Region** link = &region->domain->regions;
  while (*link != region) link = &(*link)->next;
  *link = region->next;
  --region->domain->users;
  if (region->counter != nullptr) {
    --region->counter->users;
    --region->counter->outstanding;
  }
  free(region);
  return 0;
}

int bind_counter(Region& region, Counter& counter, std::uint64_t flags) {
  if (region.counter != nullptr || counter.domain != region.domain || (flags & FI_REMOTE_WRITE) == 0) {
    log("fi_mr_bind: one counter of its domain, with FI_REMOTE_WRITE");
    return -FI_EINVAL;
  }
  region.counter = &counter;
  ++counter.users;
  ++counter.outstanding;
  return 0;
}

int bind_region(fid* fid, struct fid* what, std::uint64_t flags) {
  const Session session;
  if (!session) return -FI_EOPBADSTATE;
  auto& region = *object_of<Region>(fid);
  if (region.enabled) return -FI_EINVAL;
  if (what->fclass == FI_CLASS_CNTR) return bind_counter(region, *object_of<Counter>(what), flags);
  if (what->fclass != FI_CLASS_EP) return -FI_EINVAL;
  if (flags != 0) return -FI_EBADFLAGS;
  if (region.endpoint != nullptr) return -FI_EINVAL;
  auto& endpoint = *object_of<Endpoint>(what);
  if (region.events && (endpoint.capabilities & FI_RMA_EVENT) == 0) {
    log("fi_mr_bind: a region with FI_RMA_EVENT needs an end-point that has it");
    return -FI_EINVAL;
  }
  region.endpoint = &endpoint;
  return 0;
}

int control_region(fid* fid, int what, void*) {
  const Session session;
  if (!session) return -FI_EOPBADSTATE;
  auto& region = *object_of<Region>(fid);
  if (what != FI_ENABLE) return -FI_ENOSYS;
  if (region.endpoint == nullptr) return -FI_EOPBADSTATE;
  if (region.enabled) return 0;
  region.enabled = true;
  tell(session, region, wire::CommandKind::memory_region);
  return 0;
}

fi_ops object_calls = {
    .size = sizeof(fi_ops),
    .close = close_region,
    .bind = bind_region,
    .control = control_region,
    .ops_open = unsupported,
};

// The key of a new region; false when the application's is too long or in use.
bool choose_key(Domain& domain, std::uint64_t requested, std::uint64_t& key) {
  if (domain.provider_keys) {
    key = domain.keys_given++;
    return true;
  }
  if (requested >> (8 * client_key_bytes) != 0) return false;
  for (const Region* region = domain.regions; region != nullptr; region = region->next) {
    if (region->fid.key == requested) return false;
  }
  key = requested;
  return true;
}

int register_region(fid* fid, const void* start, std::size_t length, std::uint64_t access, std::uint64_t offset,
                    std::uint64_t requested_key, std::uint64_t flags, fid_mr** region_fid, void* context) {
  if (fid->fclass != FI_CLASS_DOMAIN) return -FI_EINVAL;
  if (offset != 0) return -FI_EINVAL;
  if ((flags & ~std::uint64_t{FI_RMA_EVENT}) != 0) {
    log("fi_mr_reg: flags 0x%llx are not offered", static_cast<unsigned long long>(flags));
    return -FI_EBADFLAGS;
  }
  const Session session;
  if (!session) return -FI_EOPBADSTATE;
  auto& domain = *object_of<Domain>(fid);
  std::uint64_t key = 0;
  if (!choose_key(domain, requested_key, key)) {
    log("fi_mr_reg: key 0x%llx is longer than %zu bytes or in use", static_cast<unsigned long long>(requested_key),
        client_key_bytes);
    return -FI_ENOKEY;
  }
  auto* region = allocate<Region>();
  if (region == nullptr) return -FI_ENOMEM;
  region->fid.fid.fclass = FI_CLASS_MR;
  region->fid.fid.context = context;
  region->fid.fid.ops = &object_calls;
  region->fid.mem_desc = region;
  region->fid.key = key;
  region->domain = &domain;
  region->start = reinterpret_cast<std::uint64_t>(start);
  region->length = length;
  region->access = access;
  region->events = (flags & FI_RMA_EVENT) != 0;
  region->next = domain.regions;
  domain.regions = region;
  ++domain.users;
  *region_fid = &region->fid;
  return 0;
}

int register_vector(fid* fid, const iovec* parts, std::size_t count, std::uint64_t access, std::uint64_t offset,
                    std::uint64_t requested_key, std::uint64_t flags, fid_mr** region, void* context) {
  if (count != 1) return -FI_EINVAL;
  return register_region(fid, parts->iov_base, parts->iov_len, access, offset, requested_key, flags, region, context);
}

int register_with_attributes(fid* fid, const fi_mr_attr* attributes, std::uint64_t flags, fid_mr** region) {
  if (attributes->iface != FI_HMEM_SYSTEM) return -FI_ENOSYS;
  return register_vector(fid, attributes->mr_iov, attributes->iov_count, attributes->access, attributes->offset,
                         attributes->requested_key, flags, region, attributes->context);
}

void report_data(CompletionQueue& queue, const Region& region, const wire::Event& event) {
  Completion completion{};
  completion.context = region.fid.fid.context;
  completion.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
  completion.length = event.length;
  completion.buffer = reinterpret_cast<void*>(event.buffer);
  completion.data = event.data;
  completion.sources = region.endpoint->addresses;
  completion.source = event.peer;
  queue.put(completion);
}

}  // namespace

bool accept_access(Process& state, const wire::Event& event, bool& delivered) {
  const Endpoint* endpoint = event.endpoint < wire::endpoint_count_max ? state.endpoints[event.endpoint] : nullptr;
  if (endpoint == nullptr) return true;
  const Region* region = endpoint->domain->regions;
  while (region != nullptr && (region->endpoint != endpoint || region->fid.key != event.tag)) region = region->next;
  if (region == nullptr) return true;
  CompletionQueue* queue = (event.flags & wire::event_flag::has_data) != 0 ? endpoint->receive.queue : nullptr;
  if (queue != nullptr) {
    if (!queue->reserve()) return false;
    report_data(*queue, *region, event);
    state.news.delivered(queue->outlet);
  }
  if (region->counter != nullptr) {
    region->counter->count(0);
    state.news.delivered(region->counter->outlet);
  }
  delivered |= queue != nullptr || region->counter != nullptr;
  return true;
}

fi_ops_mr region_calls = {
    .size = sizeof(fi_ops_mr),
    .reg = register_region,
    .regv = register_vector,
    .regattr = register_with_attributes,
};

}  // namespace dryfly::provider
