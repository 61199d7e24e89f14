#include "core/fabric/fault_plan.hpp"

#include <array>
#include <string_view>

#include "core/fabric/links.hpp"
#include "core/fabric/place_names.hpp"

namespace dryfly::fabric {
namespace {

constexpr std::uint64_t longest_ps = 1'000'000'000'000'000'000;  // 11 days
constexpr std::uint64_t billion = 1'000'000'000;

struct Word {
  std::string_view name;
  FaultKind kind;
};
constexpr std::array words{Word{"down", FaultKind::down},   Word{"absent", FaultKind::absent},
                           Word{"lanes", FaultKind::lanes}, Word{"replays", FaultKind::replays},
                           Word{"flaps", FaultKind::flaps}, Word{"drain", FaultKind::drain}};

FaultKind kind_named(const std::string& field, const std::string& name) {
  std::string accepted;
  for (const Word& word : words) {
    if (word.name == name) return word.kind;
    accepted += (accepted.empty() ? "" : ", ") + std::string(word.name);
  }
  throw SpecError(field + " = `" + name + "`: accepted are " + accepted);
}

Fault read_fault(const Spec& spec, const std::string& entry, const Dragonfly& dragonfly, const Links& links) {
  Fault fault;
  fault.kind = kind_named(entry + ".kind", spec.text(entry + ".kind"));
  fault.ports = ports_named(dragonfly, links, entry + ".where", spec.text(entry + ".where"));
  if (fault.ports.empty()) throw SpecError(entry + ".where = `" + spec.text(entry + ".where") + "`: no such link");
  fault.from_ps = spec.number_in(entry + ".from_ps", 0, longest_ps);
  if (spec.has(entry + ".until_ps")) {
    fault.until_ps = spec.number_in(entry + ".until_ps", fault.from_ps + 1, 2 * longest_ps);
  }
  if (fault.kind == FaultKind::lanes) {
    fault.lanes = static_cast<std::uint32_t>(spec.number_in(entry + ".lanes", 1, 4));
  }
  if (fault.kind == FaultKind::replays || fault.kind == FaultKind::flaps) {
    fault.rate_ppb = spec.number_in(entry + ".rate_ppb", 1, billion);
  }
  if (fault.kind == FaultKind::flaps) {
    fault.least_ps = spec.number_in(entry + ".least_ps", 1, longest_ps);
    fault.most_ps = spec.number_in(entry + ".most_ps", fault.least_ps, longest_ps);
  }
  return fault;
}

}  // namespace

FaultPlan FaultPlan::read(const Spec& spec, const Dragonfly& dragonfly, const Links& links) {
  FaultPlan plan;
  const std::uint64_t count = spec.number_in("faults.count", 0, 1'000'000);
  for (std::uint64_t n = 0; n < count; ++n) {
    plan.faults.push_back(read_fault(spec, "faults." + std::to_string(n), dragonfly, links));
  }
  plan.seed = spec.number("faults.seed");
  plan.sweeps = {spec.number_in("fabric.manager.topology_sweep_ps", 1, longest_ps),
                 spec.number_in("fabric.manager.routing_sweep_ps", 1, longest_ps),
                 spec.number_in("fabric.manager.deployment_sweep_ps", 1, longest_ps)};
  plan.packet_age_ps = spec.number_in("fabric.packet.age_ps", 1, longest_ps);
  plan.retry.timeout_ps = spec.number_in("nic.retry.timeout_ps", 1, longest_ps);
  const std::uint64_t retries = spec.number_in("nic.retry.count", 0, 7);  // the hardware's limit, fact sheet B4
  for (std::uint64_t n = 0; n < retries; ++n) {
    plan.retry.delays_ps.push_back(spec.number_in("nic.retry.delay." + std::to_string(n) + ".ps", 0, longest_ps));
  }
  return plan;
}

}  // namespace dryfly::fabric
