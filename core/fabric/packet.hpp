// What a link carries: a data packet on its way out, and after its delivery the acknowledgement on its way home.
// One record serves both, because the acknowledgement goes back by the switches the packet came through. That is our
// assumption: Rosetta's switches follow outstanding packets by end-to-end acknowledgements (fact sheet B1), which
// asks for the same switches, but the way back is not published.
#pragma once

#include <array>
#include <cstdint>

namespace dryfly::fabric {

// At most local, global, local, global, local: five links between six switches.
inline constexpr std::uint32_t most_switches = 6;

struct Path {
  // The port by which the packet leaves each switch; that of the last switch leads to the target NIC.
  std::array<std::uint8_t, most_switches> ports{};
  std::uint8_t switch_hops = 0;  // links between switches
};

struct Packet {
  std::uint32_t transfer = 0;
  std::uint32_t transmission_ps = 0;  // of the frame on any link: all have one rate
  std::uint32_t frame_bytes = 0;
  std::uint32_t sequence = 0;  // of its source NIC; names the draws of its route
  std::uint32_t next = 0;      // in the queue it waits in
  // Passing a switch replaces the port out by the port in, which is where the acknowledgement has to go.
  Path path;
  std::uint8_t place = 0;  // index of the switch it reaches next
  bool is_acknowledgement = false;
};
static_assert(sizeof(Packet) <= 32);

}  // namespace dryfly::fabric
