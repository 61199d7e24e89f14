#include "core/network/fabric/reach.hpp"

#include <algorithm>

namespace dryfly::fabric {

std::optional<std::pair<NicId, NicId>> cut_off(const std::vector<NicId>& nics, const Dragonfly& dragonfly,
                                               const LinkFaults& faults, const Manager& manager) {
  const auto has_cable = [&](NicId nic) {
    const std::uint32_t port = dragonfly.port_count() + nic.value;
    return !faults.concerns(port) || !faults.absent(port);
  };
  std::optional<SwitchId> last;
  std::vector<bool> reached;
  for (const NicId source : nics) {
    // Ranks lie packed, so most have the switch of the one before.
    if (last != dragonfly.switch_of(source)) reached = manager.reached_from(dragonfly.switch_of(source));
    last = dragonfly.switch_of(source);
    for (const NicId target : nics) {
      if (target == source) continue;
      if (!has_cable(source) || !has_cable(target) || !reached[dragonfly.switch_of(target).value])
        return std::pair{source, target};
    }
  }
  return std::nullopt;
}

std::optional<std::pair<NicId, std::string>> drained(const std::vector<NicId>& nics, const Dragonfly& dragonfly,
                                                     const Wiring& wiring, const Spec& spec) {
  const FaultPlan whole = FaultPlan::read(spec, dragonfly, wiring);
  for (std::size_t number = 0; number < whole.faults.size(); ++number) {
    const Fault& fault = whole.faults[number];
    if (fault.kind != FaultKind::drain) continue;
    for (const NicId nic : nics) {
      const std::uint32_t port = wiring.nic_port(nic);
      for (const std::uint32_t end : {port, wiring.peer(port)}) {
        const bool hit = std::binary_search(fault.ports.begin(), fault.ports.end(), end);
        if (hit) return std::pair{nic, "faults." + std::to_string(number)};
      }
    }
  }
  return std::nullopt;
}

FaultPlan plan_from(const Spec& spec, const Dragonfly& dragonfly, const Wiring& wiring, bool started) {
  FaultPlan plan = FaultPlan::read(spec, dragonfly, wiring);
  if (!started) std::erase_if(plan.faults, [](const auto& fault) { return fault.kind != FaultKind::absent; });
  return plan;
}

}  // namespace dryfly::fabric
