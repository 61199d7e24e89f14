// The ports of a network as both of its models see them, and what never changes of the links between them: which port
// is at the other end, and how long a flight takes. A link is one direction of a cable and is named by the port that
// drives it; ports of switches have the ids of the topology, those of NICs follow.
//
// Models flights by the kind of a link, and what a spec adds to single ones (fabric.extra_flight). Leaves out all that
// moves: queues, credits and shares are each model's own.
#pragma once

#include <cstdint>
#include <vector>

#include "core/network/fabric/fabric_spec.hpp"
#include "core/network/fabric/pool.hpp"
#include "core/route/paths.hpp"
#include "core/spec/spec.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly::fabric {

// Virtual channels are classes of hops: the link between the i-th and the next switch of a path uses channel i, the
// link from a NIC channel 0. A packet waits only for room in a higher channel, so no circle of waiting can close.
inline constexpr std::uint32_t channel_count = most_switches - 1;

class Wiring {
 public:
  // Throws SpecError.
  Wiring(const Dragonfly& dragonfly, const FabricSpec& fabric, const Spec& spec);

  std::uint32_t count() const { return static_cast<std::uint32_t>(ends_.size()); }
  std::uint32_t nic_port(NicId nic) const { return first_nic_port_ + nic.value; }
  bool is_nic_port(std::uint32_t port) const { return port >= first_nic_port_; }
  NicId nic_of(std::uint32_t port) const { return {port - first_nic_port_}; }
  // The port at the other end.
  std::uint32_t peer(std::uint32_t port) const { return ends_[port].peer; }
  std::uint32_t flight_ps(std::uint32_t port) const { return ends_[port].flight_ps; }

 private:
  struct End {
    std::uint32_t peer = none;
    std::uint32_t flight_ps = 0;
  };
  void connect(const Dragonfly& dragonfly, const FabricSpec& fabric);
  void add_extra_flights(const Dragonfly& dragonfly, const Spec& spec);

  std::uint32_t first_nic_port_;
  std::vector<End> ends_;
};

}  // namespace dryfly::fabric
