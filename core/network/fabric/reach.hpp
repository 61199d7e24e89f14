// What a spec's faults mean for those who want to use the network: which NICs can reach each other, and whose links are
// taken out on purpose.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/network/fabric/link_faults.hpp"
#include "core/network/fabric/manager.hpp"
#include "core/network/fabric/wiring.hpp"
#include "core/spec/spec.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly::fabric {

// As Network::cut_off and Network::drained have it.
std::optional<std::pair<NicId, NicId>> cut_off(const std::vector<NicId>& nics, const Dragonfly& dragonfly,
                                               const LinkFaults& faults, const Manager& manager);
std::optional<std::pair<NicId, std::string>> drained(const std::vector<NicId>& nics, const Dragonfly& dragonfly,
                                                     const Wiring& wiring, const Spec& spec);
// The spec's plan. Before virtual time starts only what has been absent for ever counts.
FaultPlan plan_from(const Spec& spec, const Dragonfly& dragonfly, const Wiring& wiring, bool started);

}  // namespace dryfly::fabric
