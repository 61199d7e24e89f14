#include "provider/service.hpp"

#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider/log.hpp"
#include "provider/refusal.hpp"

namespace dryfly::provider {

namespace {

using wire::Resource;

constexpr std::uint8_t best_effort = 3;  // dryfly::TrafficClass
constexpr std::uint8_t scavenger = 4;    // travels as best effort on the machine

constexpr const char* class_names[] = {"DEDICATED_ACCESS", "LOW_LATENCY", "BULK_DATA", "BEST_EFFORT"};

constexpr char invalid[] = "Invalid argument";

struct Need {
  Resource resource;
  std::uint32_t amount;
  const char* refusal;
  const char* name;
};

// Queues for commands, one each way; event queues of sends, of receives and two between providers; entries for
// receives, for the data of rendezvous and for words between providers
// (docs/model/services.md#what-an-end-point-takes).
constexpr Need needs[] = {
    {Resource::event_queues, 4, "Failed to allocated EQ", "event queues (EQs)"},
    {Resource::transmit_queues, 1, "Failed to allocate TXQ", "command queues (TXQs)"},
    {Resource::target_queues, 1, "Failed to allocate TGQ", "target queues (TGQs)"},
    {Resource::portal_entries, 3, "Failed to allocate PTE", "portal table entries (PTEs)"},
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

// Where the number comes from: "SLINGSHOT_VNIS=99", if its first one is that.
const char* source_of(const char* variable, unsigned long number, char (&room)[128]) {
  const char* given = getenv(variable);
  if (given == nullptr || strtoul(given, nullptr, 10) != number) return "";
  snprintf(room, sizeof room, " of %s=%s", variable, given);
  return room;
}

void tell_of_vni(const rank::Channel& channel, std::uint16_t vni, const char* call) {
  const wire::ServiceSettings& service = channel.header().service;
  char granted[64];
  char* at = granted;
  for (std::uint32_t n = 0; n < service.vni_count; ++n) {
    at += snprintf(at, 16, "%s%u", n == 0 ? "" : n + 1 < service.vni_count ? ", " : " and ", service.vnis[n]);
  }
  if (service.vni_count == 0) snprintf(granted, sizeof granted, "%u to %u", service.vni_least, service.vni_most);
  char room[128];
  const char* source = source_of("SLINGSHOT_VNIS", vni, room);
  if (*source == 0) source = source_of("FI_CXI_DEFAULT_VNI", vni, room);
  tell(channel, About::service, "the job's service (--service) does not grant the VNI %u%s: granted is %s; %s", vni,
       source, granted, call);
}

void tell_of_classes(const rank::Channel& channel, std::uint8_t asked) {
  char granted[96] = "";
  for (std::uint32_t n = 0; n < std::size(class_names); ++n) {
    if ((channel.header().service.classes >> n & 1U) == 0) continue;
    const std::size_t used = strlen(granted);
    snprintf(granted + used, sizeof granted - used, "%s%s", used == 0 ? "" : ", ", class_names[n]);
  }
  const bool has_other = asked != best_effort;
  tell(channel, About::service,
       "the job's service (--service) does not grant the class %s%s: granted is %s; fi_enable answers \"%s\"",
       class_names[asked], has_other ? ", nor BEST_EFFORT, which would take its place" : "", granted, invalid);
}

void tell_of_resource(const rank::Channel& channel, Resource resource, const char* name, std::uint32_t amount,
                      const char* answer) {
  tell(channel, About::service,
       "the job's service (--service) grants %u %s of a NIC to the ranks of a node together, and there are not the %u "
       "that are asked for; %s",
       channel.header().service.most[static_cast<std::uint32_t>(resource)], name, amount, answer);
}

}  // namespace

bool service_known(const rank::Channel& channel, std::uint32_t service) {
  const std::uint32_t known = channel.header().service.id;
  if (known == 0 || known == service) return true;
  log("cxil_get_svc with svc_id %u failed: the job's service is %u", service, known);
  char room[128];
  tell(channel, About::service,
       "the service %u%s is not the job's: accepted is %u (svc_id of --service); fi_domain answers \"%s\"", service,
       source_of("SLINGSHOT_SVC_IDS", service, room), known, invalid);
  return false;
}

bool key_granted(const rank::Channel& channel, const AuthKey& key) {
  if (!service_known(channel, key.service)) return false;
  if (vni_granted(channel.header().service, key.vni)) return true;
  log("Invalid VNI %u for svc_id %u", key.vni, key.service);
  tell_of_vni(channel, key.vni, "fi_getinfo offers nothing for that auth_key");
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
    if (vni_granted(service, vni)) {
      tell_of_classes(channel, asked);
    } else {
      tell_of_vni(channel, vni, "fi_enable answers \"Invalid argument\"");
    }
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
    tell_of_resource(channel, need.resource, need.name, need.amount, "fi_enable answers \"No space left on device\"");
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
  tell_of_resource(channel, Resource::counters, "counters (CTs)", 1,
                   "fi_cntr_open answers \"Numerical argument out of domain\"");
  return -FI_EDOMAIN;
}

void give_back_counter(const rank::Channel& channel, std::uint32_t nic) {
  if (channel.header().service.id != 0) use(channel, nic, Resource::counters).fetch_sub(1);
}

}  // namespace dryfly::provider
