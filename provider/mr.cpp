#include "provider/mr.hpp"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "provider/attributes.hpp"
#include "provider/device_memory.hpp"
#include "provider/log.hpp"
#include "provider/memory.hpp"
#include "provider/process.hpp"
#include "provider/unsupported.hpp"

namespace dryfly::provider {

namespace {

// Of the provider's own keys.
constexpr std::uint64_t standard_region = std::uint64_t{1} << 62;
constexpr std::uint64_t telling = std::uint64_t{1} << 61;
// Without the cache of such keys so many regions have a portal of their own.
constexpr std::uint64_t optimized_without_cache = 92;

const Region* region_of(const Process& state, const wire::Event& event) {
  const Endpoint* endpoint = event.endpoint < wire::endpoint_count_max ? state.endpoints[event.endpoint] : nullptr;
  if (endpoint == nullptr) return nullptr;
  const Region* region = endpoint->domain->regions;
  while (region != nullptr && (region->endpoint != endpoint || region->fid.key != event.key)) region = region->next;
  return region;
}

// Complete when the region is enabled, because only then it is known whether it has a counter.
std::uint64_t marked_key(const Environment& environment, const Region& region) {
  std::uint64_t key = region.fid.key;
  const bool tells = region.events || region.counter != nullptr;
  const bool cached = environment.key_cache && !tells;
  const bool optimized = environment.optimized_regions && !region.events && !region.domain->writes_data &&
                         (cached || key < optimized_without_cache);
  if (!optimized) key |= standard_region;
  if (tells) key |= telling;
  return key;
}

// Whether the NIC has an entry for all regions of this kind, which is not taken back: with keys of the provider's own.
bool keeps_entry(const Environment& environment, const Region& region) {
  const bool tells = region.events || region.counter != nullptr;
  return region.domain->provider_keys && environment.key_cache && !tells;
}

void tell(const Session& session, const Region& region, wire::CommandKind kind) {
  auto command = region.endpoint->command(kind);
  command.key = region.fid.key;
  command.buffer = region.start;
  command.length = region.length;
  command.pages = region.pages;
  command.access = region.access;
  command.gpu = gpu_of(reinterpret_cast<const void*>(region.start));
  if (region.counter != nullptr) {
    command.flags |= wire::command_flag::tells;
    command.counter = region.counter->number;
  }
  session.channel().push(command, nullptr);
}

int close_region(fid* fid) {
  const Session session;
  auto* region = object_of<Region>(fid);
  if (session && region->enabled) {
    tell(session, *region, wire::CommandKind::close_memory_region);
    if (!keeps_entry(session.state().environment, *region)) charge_link(session, *region->domain);
  }
  if (session) release_region(session, *region->domain, region->mapping);
  Region** link = &region->domain->regions;
  while (*link != region) link = &(*link)->next;
  *link = region->next;
  --region->domain->users;
  if (region->counter != nullptr) {
    --region->counter->users;
    region->counter->settle_one();
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
  // The flags are not looked at for an end-point, which has to be enabled (prov/cxi: cxip_mr_bind).
  auto& endpoint = *object_of<Endpoint>(what);
  if (region.endpoint != nullptr || endpoint.domain != region.domain || !endpoint.enabled) return -FI_EINVAL;
  if (region.events && (endpoint.capabilities & FI_RMA_EVENT) == 0) {
    log("fi_mr_bind: a region with FI_RMA_EVENT needs an end-point that has it");
    return -FI_EINVAL;
  }
  if (refuses(endpoint, reinterpret_cast<const void*>(region.start))) return -FI_EOPNOTSUPP;
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
  if (region.domain->provider_keys) region.fid.key = marked_key(session.state().environment, region);
  if (!keeps_entry(session.state().environment, region)) charge_link(session, *region.domain);
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
  if ((flags & ~(std::uint64_t{FI_RMA_EVENT} | FI_HMEM_DEVICE_ONLY)) != 0) {
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
  region->mapping = register_region(session, domain, start, length, region->pages);
  ++domain.users;
  *region_fid = &region->fid;
  return 0;
}

int register_vector(fid* fid, const iovec* parts, std::size_t count, std::uint64_t access, std::uint64_t offset,
                    std::uint64_t requested_key, std::uint64_t flags, fid_mr** region, void* context) {
  if (count != 1) return count == 0 ? -FI_EINVAL : -FI_ENOSYS;  // as cxip_regattr, which takes one range only
  return register_region(fid, parts->iov_base, parts->iov_len, access, offset, requested_key, flags, region, context);
}

// Whose memory it is says the pointer: as cxip_regattr it looks neither at the interface nor at the device.
int register_with_attributes(fid* fid, const fi_mr_attr* attributes, std::uint64_t flags, fid_mr** region) {
  return register_vector(fid, attributes->mr_iov, attributes->iov_count, attributes->access, attributes->offset,
                         attributes->requested_key, flags, region, attributes->context);
}

}  // namespace

bool is_optimized(const Environment& environment, const Domain& domain, std::uint64_t key) {
  if (domain.provider_keys) return (key & standard_region) == 0;
  return environment.optimized_regions && key < optimized_keys;
}

bool tells_of_accesses(const Domain& domain, std::uint64_t key) { return domain.provider_keys && (key & telling) != 0; }

bool report_write(Process& state, const wire::Event& event, bool& reported) {
  const Region* region = region_of(state, event);
  CompletionQueue* queue = region != nullptr ? region->endpoint->receive.queue : nullptr;
  if (queue == nullptr) return true;
  if (!queue->reserve()) return false;
  Completion completion{};
  completion.context = region->fid.fid.context;
  completion.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
  completion.length = event.length;
  completion.data = event.data;
  completion.buffer = reinterpret_cast<void*>(region->start + event.offset);
  completion.sources = region->endpoint->addresses;
  completion.source = event.peer;
  queue->put(completion);
  state.news.reported(queue->outlet);
  reported = true;
  return true;
}

bool count_access(Process& state, const wire::Event& event) {
  const Region* region = region_of(state, event);
  if (region == nullptr || region->counter == nullptr) return false;
  region->counter->count(0);
  state.news.reported(region->counter->outlet);
  return true;
}

fi_ops_mr region_calls = {
    .size = sizeof(fi_ops_mr),
    .reg = register_region,
    .regv = register_vector,
    .regattr = register_with_attributes,
};

}  // namespace dryfly::provider
