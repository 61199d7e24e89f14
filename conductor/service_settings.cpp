#include "conductor/service_settings.hpp"

#include <algorithm>

#include "conductor/triggers.hpp"
#include "core/contract/network.hpp"
#include "core/spec/fields.hpp"

namespace dryfly {

namespace {

static_assert(fields::topology_kind_nics_per_node.most == wire::nics_per_node_max);
static_assert(fields::service_vni_count.most == wire::service_vnis_max);

constexpr std::uint32_t every_class = 0x3f;

std::uint32_t limit_of(const Spec& spec, const NumberField& field) {
  return spec.has(field) ? spec.small(field) : UINT32_MAX;
}

}  // namespace

std::uint64_t service_use_bytes(const wire::ServiceSettings& service) {
  return service.id == 0 ? 0 : sizeof(wire::ServiceUse);
}

wire::ServiceSettings service_settings(const Spec& spec, std::uint64_t use_offset) {
  wire::ServiceSettings service{};
  service.use_offset = use_offset;
  service.classes = every_class;
  service.triggered_operations = Triggers::usual_entries;
  if (!spec.has(fields::service_id)) return service;
  service.id = spec.small(fields::service_id);
  service.vni_count = spec.small(fields::service_vni_count);
  for (std::uint32_t n = 0; n < service.vni_count; ++n) {
    service.vnis[n] = static_cast<std::uint16_t>(spec.small(fields::service_vni, {n}));
  }
  service.vni_least = static_cast<std::uint16_t>(spec.small(fields::service_vni_least));
  service.vni_most = static_cast<std::uint16_t>(spec.small(fields::service_vni_most));
  service.classes = spec.small(fields::service_classes);
  service.most[static_cast<std::uint32_t>(wire::Resource::portal_entries)] =
      limit_of(spec, fields::service_portal_entries);
  service.most[static_cast<std::uint32_t>(wire::Resource::transmit_queues)] =
      limit_of(spec, fields::service_transmit_queues);
  service.most[static_cast<std::uint32_t>(wire::Resource::target_queues)] =
      limit_of(spec, fields::service_target_queues);
  service.most[static_cast<std::uint32_t>(wire::Resource::event_queues)] = limit_of(spec, fields::service_event_queues);
  service.most[static_cast<std::uint32_t>(wire::Resource::counters)] = limit_of(spec, fields::service_counters);
  if (spec.has(fields::service_triggered_operations))
    service.triggered_operations = spec.small(fields::service_triggered_operations);
  return service;
}

}  // namespace dryfly
