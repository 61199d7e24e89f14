// The ways of transfers: which ports they pass, and how long that takes when nothing is in the way. The algorithms are
// those of core/route, by the same registry; what they see of loads is what Pipes has. With faults the ways that the
// manager has the routes avoid are not taken, as in the packet model.
//
// Of an algorithm's division among ways flows need no more than its kind, and that is found by asking it: on an idle
// machine does it take minimal ways, and does it leave them when they are loaded (docs/model/flows.md#ways).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/network/fabric/fabric_spec.hpp"
#include "core/network/fabric/manager.hpp"
#include "core/network/fabric/wiring.hpp"
#include "core/network/flow/pipes.hpp"
#include "core/route/routing.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly::flow {

// From one NIC to another.
struct Journey {
  NicId source;
  NicId target;
  std::uint32_t draw = 0;  // its route and latencies are drawn from it
  fabric::Path path{};
  fabric::Way way{};
  bool laid = false;

  bool loops() const { return source == target; }
};

class Ways {
 public:
  Ways(const Dragonfly& dragonfly, const Spec& spec, const fabric::FabricSpec& fabric, const fabric::Wiring& wiring,
       const Pipes& pipes);

  void managed_by(fabric::Manager& manager) { manager_ = &manager; }

  // Chooses a way; of a journey that has one, only where its algorithm leaves that or the routes now avoid it.
  void lay(Journey& journey) const;
  // The ports that drive the links of the way, from the NIC's to the one that leads to the target.
  void ports_of(const Journey& journey, std::vector<std::uint32_t>& ports) const;
  // From the first byte on the first link to the first byte at the target, and of an acknowledgement back.
  std::uint64_t out_ps(const Journey& journey) const;
  std::uint64_t home_ps(const Journey& journey) const;

  bool takes_minimal() const { return takes_minimal_; }
  bool takes_detours() const { return takes_detours_; }

 private:
  std::uint64_t latencies_ps(const Journey& journey, std::uint32_t stream) const;
  std::uint64_t flights_ps(const Journey& journey, bool home) const;
  void choose(Journey& journey, const fabric::RouteQuery& query, std::uint32_t draw) const;
  void find_kind();

  const Dragonfly& dragonfly_;
  const fabric::Wiring& wiring_;
  const Pipes& pipes_;
  std::unique_ptr<fabric::Routing> routing_;
  fabric::Manager* manager_ = nullptr;  // with faults only
  std::uint64_t latency_least_ps_;
  std::uint64_t latency_values_;
  bool takes_minimal_ = true;
  bool takes_detours_ = false;
};

}  // namespace dryfly::flow
