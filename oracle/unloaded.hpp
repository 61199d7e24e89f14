// How long a transfer takes through a fabric that carries nothing else, worked out from the written rules alone: no
// code is shared with core/network/packet, which must agree to the picosecond.
//
// The rules. A packet of b bytes (payload and header) occupies each link of its way for s = ceil(b / rate)
// picoseconds. Switches cut through: the head leaves a switch a fixed latency after it came, so each link adds its
// flight, each switch its latency, and s counts once. With F the flights of all links and K switches, the last byte
// of a packet that starts at t is at its target at t + s + F + K latency. Packets follow each other without gap; a
// shorter one keeps its distance. The acknowledgement starts with the last byte's arrival, takes the same way back,
// and is home when its own last byte is. A packet may start only when that of `window` packets before is home.
#pragma once

#include <cstdint>
#include <vector>

namespace dryfly::oracle {

struct Fabric {
  std::uint64_t rate_bytes_per_s = 0;
  std::uint64_t edge_flight_ps = 0;
  std::uint64_t local_flight_ps = 0;
  std::uint64_t global_flight_ps = 0;
  std::uint64_t switch_latency_ps = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t header_bytes = 0;
  std::uint64_t ack_bytes = 0;
  std::uint64_t window_packets = 0;
};

// Links between switches on the way.
struct Way {
  std::uint64_t local_links = 0;
  std::uint64_t global_links = 0;
};

struct Times {
  std::uint64_t delivered_ps = 0;
  std::uint64_t acknowledged_ps = 0;
};

inline std::uint64_t occupation_ps(const Fabric& fabric, std::uint64_t bytes) {
  // In two steps, since bytes x 10^12 would need more than 64 bits: whole seconds do not occur here.
  const std::uint64_t nano = bytes * 1'000'000'000;
  const std::uint64_t whole = nano / fabric.rate_bytes_per_s;
  const std::uint64_t rest = nano % fabric.rate_bytes_per_s * 1'000;
  return whole * 1'000 + rest / fabric.rate_bytes_per_s + (rest % fabric.rate_bytes_per_s != 0 ? 1 : 0);
}

// Of the head, from the start on the first link to the end of the last, serialisation not counted.
inline std::uint64_t way_ps(const Fabric& fabric, const Way& way) {
  const std::uint64_t switches = way.local_links + way.global_links + 1;
  return 2 * fabric.edge_flight_ps + way.local_links * fabric.local_flight_ps +
         way.global_links * fabric.global_flight_ps + switches * fabric.switch_latency_ps;
}

// While the window never closes: all serialisations one behind the other, and the way once.
inline Times unloaded_open_window(const Fabric& fabric, const Way& way, std::uint64_t bytes) {
  const std::uint64_t full = bytes / fabric.payload_bytes;
  const std::uint64_t rest = bytes % fabric.payload_bytes;
  std::uint64_t sent = full * occupation_ps(fabric, fabric.payload_bytes + fabric.header_bytes);
  if (rest > 0 || bytes == 0) sent += occupation_ps(fabric, rest + fabric.header_bytes);
  const std::uint64_t delivered = sent + way_ps(fabric, way);
  return {delivered, delivered + occupation_ps(fabric, fabric.ack_bytes) + way_ps(fabric, way)};
}

// In general, packet by packet.
inline Times unloaded(const Fabric& fabric, const Way& way, std::uint64_t bytes) {
  const std::uint64_t ack = occupation_ps(fabric, fabric.ack_bytes);
  const std::uint64_t travel = way_ps(fabric, way);
  std::vector<std::uint64_t> home;
  std::uint64_t link_free = 0;
  std::uint64_t ack_link_free = 0;
  std::uint64_t delivered = 0;
  std::uint64_t left = bytes;
  do {
    const std::uint64_t payload = left < fabric.payload_bytes ? left : fabric.payload_bytes;
    left -= payload;
    std::uint64_t start = link_free;
    if (home.size() >= fabric.window_packets) {
      const std::uint64_t opened = home[home.size() - fabric.window_packets];
      if (opened > start) start = opened;
    }
    link_free = start + occupation_ps(fabric, payload + fabric.header_bytes);
    delivered = link_free + travel;
    const std::uint64_t ack_start = delivered > ack_link_free ? delivered : ack_link_free;
    ack_link_free = ack_start + ack;
    home.push_back(ack_link_free + travel);
  } while (left > 0);
  return {delivered, home.back()};
}

}  // namespace dryfly::oracle
