#include "core/nic/host_path.hpp"

#include <algorithm>

namespace dryfly::nic {

MemoryPath HostPaths::place(NicId nic, NodeId node, const MemoryPlace& host) {
  MemoryPath place;
  if (host.socket != host.nic_socket) place.crossing = spec_.socket_latency;
  place.plain = place.crossing == Duration{} && !shares_bus();
  if (!shares_bus()) return place;
  if (nic.value >= lane_of_.size()) lane_of_.resize(nic.value + std::size_t{1}, none);
  std::uint32_t& lane = lane_of_[nic.value];
  if (lane == none) {
    lane = static_cast<std::uint32_t>(lanes_.size());
    const auto [bus, first] = bus_of_.try_emplace({node, host.nic_socket}, static_cast<std::uint32_t>(buses_.size()));
    if (first) buses_.emplace_back();
    Bus& joined = buses_[bus->second];
    ++joined.lanes;
    joined.ahead = transmission_time(Bytes{2 * joined.lanes * spec_.framing.payload_max.count}, spec_.pcie_rate);
    lanes_.emplace_back().bus = bus->second;
  }
  place.lane = lane;
  return place;
}

void HostPaths::took(NicId nic, Bytes payload, Instant now) {
  const std::uint32_t number = lane_of(nic);
  if (number == none) return;
  Lane& lane = lanes_[number];
  Bus& bus = buses_[lane.bus];
  const Duration on_link = link_.time_of(payload);
  const Instant began{now.ps - std::min(now.ps, on_link.ps)};
  bus.to_memory_until = std::max(bus.to_memory_until, began) + pcie_.time_of(payload);
  lane.there = bus.to_memory_until;
}

void HostPaths::sends(NicId nic, Bytes payload, Instant now) {
  const std::uint32_t number = lane_of(nic);
  if (number == none) return;
  Lane& lane = lanes_[number];
  Bus& bus = buses_[lane.bus];
  bus.from_memory_until = std::max(bus.from_memory_until, now) + pcie_.time_of(payload);
  lane.sent = bus.from_memory_until;
}

Instant HostPaths::may_send(NicId nic) const {
  const std::uint32_t number = lane_of(nic);
  if (number == none) return {};
  const Lane& lane = lanes_[number];
  const Duration early = buses_[lane.bus].ahead;
  return Instant{lane.sent.ps - std::min(lane.sent.ps, early.ps)};
}

Duration HostPaths::arrival_lag(std::uint32_t number, Instant now) const {
  if (!shares_bus()) return {};
  const Instant there = lanes_[number].there;
  return there > now ? there - now : Duration{};
}

}  // namespace dryfly::nic
