// The ways a packet can take through a dragonfly, before anything is chosen. A way is minimal (the direct link inside
// a group, or one of the global links between two groups with the local links to and from it) or a detour (by way of
// a third switch of the group, or of a third group). A detour by a third group is laid as far as the switch where it
// enters that group; how it goes on is decided there.
#pragma once

#include <array>
#include <cstdint>

#include "core/topology/dragonfly.hpp"

namespace dryfly::fabric {

// At most local, global, local, global, local: five links between six switches.
inline constexpr std::uint32_t most_switches = 6;

struct Path {
  // The port by which the packet leaves each switch; that of the last switch leads to the target NIC.
  std::array<std::uint8_t, most_switches> ports{};
  std::uint8_t switch_hops = 0;  // links between switches
  // Index of the switch that decides how the packet goes on; what lies behind it on the path is not known before.
  std::uint8_t decide_at = 0;
};
inline constexpr std::uint8_t decided = 0xff;

struct Way {
  const GlobalEnd* first_global = nullptr;   // none: source and target switch are in one group
  const GlobalEnd* second_global = nullptr;  // a detour by a third group
  SwitchId via;                              // a detour by a third switch; the target switch otherwise
  std::uint32_t parallel = 0;                // picks among parallel local links, as a fraction of 2^32
  bool open_ended = false;                   // ends where first_global does, in a third group
};

// Lays the way from switch `at`, which is the path's last so far, to the NIC at `target_port` of `target`.
void lay(Path& path, const Dragonfly& dragonfly, SwitchId at, SwitchId target, std::uint8_t target_port,
         const Way& way);
// The ports from `source` to the NIC at `target_port` of `target`.
Path path_along(const Dragonfly& dragonfly, SwitchId source, SwitchId target, std::uint8_t target_port, const Way& way);

// Links between switches on that path; the part of an open-ended way that is not known counts as two.
std::uint32_t hops_along(SwitchId source, SwitchId target, const Way& way);

// The local port from one switch to another of its group by the parallel link that the fraction picks.
std::uint8_t local_port(const Dragonfly& dragonfly, SwitchId from, SwitchId to, std::uint32_t parallel);

}  // namespace dryfly::fabric
