#include "provider/service.hpp"

#include <rdma/fi_errno.h>

#include "provider/log.hpp"

namespace dryfly::provider {

namespace {

using wire::Resource;

constexpr std::uint8_t best_effort = 3;  // dryfly::TrafficClass
constexpr std::uint8_t scavenger = 4;    // travels as best effort on the machine

constexpr const char* class_names[] = {"DEDICATED_ACCESS", "LOW_LATENCY", "BULK_DATA", "BEST_EFFORT"};

struct Need {
  Resource resource;
  std::uint32_t amount;
  const char* refusal;
};

// Queues for commands, one each way; event queues of sends, of receives and two between providers; entries for
// receives, for the data of rendezvous and for words between providers
// (docs/model/services.md#what-an-end-point-takes).
constexpr Need needs[] = {
    {Resource::event_queues, 4, "Failed to allocated EQ"},
    {Resource::transmit_queues, 1, "Failed to allocate TXQ"},
    {Resource::target_queues, 1, "Failed to allocate TGQ"},
    {Resource::portal_entries, 3, "Failed to allocate PTE"},
};

std::atomic<std::uint32_t>& use(const rank::Channel& channel, std::uint32_t nic, Resource resource) {
  wire::SegmentHeader& header = channel.header();
  auto* nodes = reinterpret_cast<wire::ServiceUse*>(reinterpret_cast<char*>(&header) + header.service.use_offset);
  return nodes[channel.page().share.node_of_job].of_nic[nic][static_cast<std::uint32_t>(resource)];
}

bool take(const rank::Channel& channel, std::uint32_t nic, Resource resource, std::uint32_t amount) {
  std::atomic<std::uint32_t>& used = use(channel, nic, resource);
  const std::uint32_t most = channel.header().service.most[static_cast<std::uint32_t>(resource)];
  if (used.fetch_add(amount) + amount <= most) return true;
  used.fetch_sub(amount);
  return false;
}

bool vni_granted(const wire::ServiceSettings& service, std::uint16_t vni) {
  if (service.id == 0) return true;
  for (std::uint32_t n = 0; n < service.vni_count; ++n) {
    if (service.vnis[n] == vni) return true;
  }
  return service.vni_count == 0 && vni >= service.vni_least && vni <= service.vni_most;
}

}  // namespace

bool service_known(const wire::SegmentHeader& header, std::uint32_t service) {
  if (header.service.id == 0 || header.service.id == service) return true;
  log("cxil_get_svc with svc_id %u failed: the job's service is %u", service, header.service.id);
  return false;
}

bool key_granted(const wire::SegmentHeader& header, const AuthKey& key) {
  if (!service_known(header, key.service)) return false;
  if (vni_granted(header.service, key.vni)) return true;
  log("Invalid VNI %u for svc_id %u", key.vni, key.service);
  return false;
}

bool granted_class(const rank::Channel& channel, std::uint16_t vni, std::uint8_t& traffic_class) {
  const wire::ServiceSettings& service = channel.header().service;
  if (service.id == 0) return true;
  const std::uint8_t asked = traffic_class == scavenger ? best_effort : traffic_class;
  const bool granted = (service.classes >> asked & 1U) != 0;
  if (granted && vni_granted(service, vni)) return true;
  log("Failed to allocate CP, ret: %d VNI: %u TC: %s TYPE: DEFAULT", -FI_EINVAL, vni, class_names[asked]);
  log("Remapping original TC from %s to %s", class_names[asked], class_names[best_effort]);
  if ((service.classes >> best_effort & 1U) == 0 || !vni_granted(service, vni)) {
    log("Failed to allocate CP, ret: %d VNI: %u TC: %s TYPE: DEFAULT", -FI_EINVAL, vni, class_names[best_effort]);
    return false;
  }
  channel.page().times.classes_refused |= 1U << asked;
  traffic_class = best_effort;
  return true;
}

int take_endpoint(const rank::Channel& channel, std::uint32_t nic) {
  if (channel.header().service.id == 0) return 0;
  for (const Need& need : needs) {
    if (take(channel, nic, need.resource, need.amount)) continue;
    log("%s, ret: %d", need.refusal, -FI_ENOSPC);
    for (const Need* taken = needs; taken != &need; ++taken)
      use(channel, nic, taken->resource).fetch_sub(taken->amount);
    return -FI_ENOSPC;
  }
  return 0;
}

void give_back_endpoint(const rank::Channel& channel, std::uint32_t nic) {
  if (channel.header().service.id == 0) return;
  for (const Need& need : needs) use(channel, nic, need.resource).fetch_sub(need.amount);
}

int take_counter(const rank::Channel& channel, std::uint32_t nic) {
  if (channel.header().service.id == 0 || take(channel, nic, Resource::counters, 1)) return 0;
  log("Failed to allocate CT, ret: %d", -FI_ENOSPC);
  return -FI_EDOMAIN;
}

void give_back_counter(const rank::Channel& channel, std::uint32_t nic) {
  if (channel.header().service.id != 0) use(channel, nic, Resource::counters).fetch_sub(1);
}

}  // namespace dryfly::provider
