// The address of a NIC on the fabric follows from where it is plugged in: 9 bits of group, 5 of switch, 6 of port.
// Its MAC is 02:00:00 and these 20 bits (docs/model/topology.md#addresses). So whoever knows the wiring knows every
// address: the fabric manager hands out the ARP tables complete, nobody asks by broadcast, and none is simulated.
#pragma once

#include <cstdint>
#include <optional>

#include "core/topology/dragonfly.hpp"

namespace dryfly {

// None where a number does not fit its bits, on machines larger than the hardware can be.
inline std::optional<std::uint32_t> fabric_address(const Dragonfly& dragonfly, NicId nic) {
  const SwitchId at = dragonfly.switch_of(nic);
  const GroupId group = dragonfly.group_of(at);
  const std::uint32_t place = at.value - dragonfly.first_switch(group).value;
  const std::uint32_t port = dragonfly.port_of(nic);
  if (group.value >= 1U << 9 || place >= 1U << 5 || port >= 1U << 6) return std::nullopt;
  return group.value << 11 | place << 6 | port;
}

}  // namespace dryfly
