// What a link carries: a data packet on its way out, after its delivery the acknowledgement on its way home, or the
// notice by which a switch tells a source of a hot end-point. One record serves both ways of a packet, because the
// acknowledgement goes back by the switches the packet came through. That is our assumption: Rosetta's switches
// follow outstanding packets by end-to-end acknowledgements
// (docs/model/switch.md#acknowledgements-through-the-switch), which asks for the same switches, but the way back is
// not published.
#pragma once

#include <cstdint>

#include "core/route/paths.hpp"

namespace dryfly::fabric {

// A refusal (NACK) goes home as an acknowledgement does: for lack of room, or because the packet is out of sequence.
enum class PacketKind : std::uint8_t { data, acknowledgement, notice, refusal, sequence_refusal };
constexpr bool refuses(PacketKind kind) { return kind >= PacketKind::refusal; }

struct Packet {
  std::uint32_t transfer = 0;
  std::uint32_t transmission_ps = 0;  // of the frame on any link: all have one rate
  std::uint32_t frame_bytes = 0;
  std::uint32_t draw = 0;  // a random word of its own; its route and its latencies are drawn from it
  std::uint32_t next = 0;  // in the queue it waits in
  // On the way home the field holds what the target's switch tells the source: see core/network/packet/congestion.hpp.
  std::uint32_t& interval_ps() { return next; }
  // Passing a switch replaces the port out by the port in, which is where the acknowledgement has to go.
  Path path;
  std::uint8_t place = 0;  // index of the switch it reaches next
  PacketKind kind : 7 = PacketKind::data;
  bool looped : 1 = false;         // from a NIC to itself
  std::uint8_t traffic_class = 0;  // of the profile, see core/network/fabric/qos.hpp
  std::uint8_t path_number = 0;    // with faults only: which path of its flow, modulo 256
};
static_assert(sizeof(Packet) <= 32);

}  // namespace dryfly::fabric
