// What a scenario does to the network, read from the resolved spec (docs/reference/resolved-spec.md, `faults`): which
// links it concerns, and from when to when. Instants count from the start of virtual time; nothing happens before it.
//
// Models docs/model/reliability.md#lanes, docs/model/reliability.md#link-level-retry,
// docs/model/reliability.md#flaps, docs/model/reliability.md#traffic-of-others,
// docs/model/reliability.md#retry-schedule and docs/model/reliability.md#sweeps-of-the-fabric-manager. The numbers are
// the machine's (data/hardware), the scenario is the user's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/spec/spec.hpp"
#include "core/topology/dragonfly.hpp"
#include "core/unit/unit.hpp"

namespace dryfly::fabric {

class Wiring;

enum class FaultKind : std::uint8_t {
  down,     // nothing passes: a flap, or a loss that lasts
  absent,   // down, and every route has known it from the beginning
  lanes,    // runs on some of its four lanes
  replays,  // the link-level retry sends a share of the packets again
  flaps,    // goes down at random
  drain,    // the manager takes it out of the routes, then down; back at the end
  load      // traffic of others has a share of it
};

struct Fault {
  FaultKind kind = FaultKind::down;
  std::vector<std::uint32_t> ports;  // that drive the links
  std::uint64_t from_ps = 0;
  std::uint64_t until_ps = never.ps;
  std::uint32_t lanes = 4;
  std::uint64_t rate_ppb = 0;  // of packets; of flaps: that begin in a second, by link; of a load: of the link
  std::uint64_t least_ps = 0;  // how long a flap lasts
  std::uint64_t most_ps = 0;

  // Every instant has it as every other.
  bool is_lasting() const {
    const bool steady =
        kind == FaultKind::absent || kind == FaultKind::lanes || kind == FaultKind::replays || kind == FaultKind::load;
    return steady && from_ps == 0 && until_ps == never.ps;
  }
};

// When the fabric manager acts: each of its sweeps begins with the start of virtual time and works on what the one
// before it has left, topology, then routing, then deployment. That order is our assumption.
struct Sweeps {
  std::uint64_t topology_ps = 1;
  std::uint64_t routing_ps = 1;
  std::uint64_t deployment_ps = 1;
};

struct RetrySchedule {
  std::uint64_t timeout_ps = 0;
  std::vector<std::uint64_t> delays_ps;  // after the first, second, ... time-out; as many as there are retries
};

struct FaultPlan {
  std::vector<Fault> faults;
  std::uint64_t seed = 0;
  Sweeps sweeps;
  std::uint64_t packet_age_ps = 0;  // no packet stays in the fabric for longer
  RetrySchedule retry;

  // Throws SpecError.
  static FaultPlan read(const Spec& spec, const Dragonfly& dragonfly, const Wiring& wiring);
  static bool any_in(const Spec& spec);
};

}  // namespace dryfly::fabric
