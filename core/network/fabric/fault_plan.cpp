#include "core/network/fabric/fault_plan.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/network/fabric/place_names.hpp"
#include "core/network/fabric/wiring.hpp"
#include "core/spec/fields.hpp"
#include "core/unit/check.hpp"

namespace dryfly::fabric {
namespace {

struct Word {
  std::string_view name;
  FaultKind kind;
};
constexpr std::array words{Word{"down", FaultKind::down},   Word{"absent", FaultKind::absent},
                           Word{"lanes", FaultKind::lanes}, Word{"replays", FaultKind::replays},
                           Word{"flaps", FaultKind::flaps}, Word{"drain", FaultKind::drain},
                           Word{"load", FaultKind::load}};

FaultKind kind_named(const std::string& name) {
  const auto* found = std::find_if(words.begin(), words.end(), [&](const Word& word) { return word.name == name; });
  DRYFLY_CHECK(found != words.end());  // the field's choices are these
  return found->kind;
}

Fault read_fault(const Spec& spec, std::uint64_t n, const Dragonfly& dragonfly, const Wiring& wiring) {
  Fault fault;
  fault.kind = kind_named(spec.text(fields::faults_kind, {n}));
  const std::string where = fields::faults_where.at({n});
  const std::string& place = spec.text(fields::faults_where, {n});
  fault.ports = ports_named(dragonfly, wiring, where, place);
  if (fault.ports.empty()) throw SpecError(where + " = `" + place + "`: no such link");
  fault.from_ps = spec.number(fields::faults_from_ps, {n});
  if (spec.has(fields::faults_until_ps, {n})) {
    fault.until_ps = spec.number_between(fault.from_ps + 1, UINT64_MAX, fields::faults_until_ps, {n});
  }
  if (fault.kind == FaultKind::lanes) fault.lanes = spec.small(fields::faults_lanes, {n});
  if (fault.kind == FaultKind::replays || fault.kind == FaultKind::flaps) {
    fault.rate_ppb = spec.number(fields::faults_rate_ppb, {n});
  }
  if (fault.kind == FaultKind::load) {
    fault.rate_ppb = spec.number_between(1, 999'999'999, fields::faults_rate_ppb, {n});
  }
  if (fault.kind == FaultKind::flaps) {
    fault.least_ps = spec.number(fields::faults_least_ps, {n});
    fault.most_ps = spec.number_between(fault.least_ps, UINT64_MAX, fields::faults_most_ps, {n});
  }
  return fault;
}

}  // namespace

bool FaultPlan::any_in(const Spec& spec) {
  return spec.has(fields::faults_count) && spec.number(fields::faults_count) > 0;
}

FaultPlan FaultPlan::read(const Spec& spec, const Dragonfly& dragonfly, const Wiring& wiring) {
  FaultPlan plan;
  const std::uint64_t count = spec.number(fields::faults_count);
  for (std::uint64_t n = 0; n < count; ++n) plan.faults.push_back(read_fault(spec, n, dragonfly, wiring));
  plan.seed = spec.number(fields::faults_seed);
  plan.sweeps = {spec.number(fields::fabric_manager_topology_sweep_ps),
                 spec.number(fields::fabric_manager_routing_sweep_ps),
                 spec.number(fields::fabric_manager_deployment_sweep_ps)};
  plan.packet_age_ps = spec.number(fields::fabric_packet_age_ps);
  plan.retry.timeout_ps = spec.number(fields::nic_retry_timeout_ps);
  const std::uint64_t retries = spec.number(fields::nic_retry_count);
  for (std::uint64_t n = 0; n < retries; ++n) {
    plan.retry.delays_ps.push_back(spec.number(fields::nic_retry_delay_ps, {n}));
  }
  return plan;
}

}  // namespace dryfly::fabric
