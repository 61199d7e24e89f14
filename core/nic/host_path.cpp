#include "core/nic/host_path.hpp"

#include <algorithm>

namespace dryfly::nic {

MemoryPath HostPaths::place(NicId nic, NodeId node, const MemoryPlace& host) {
  MemoryPath place;
  if (host.socket != host.nic_socket) place.crossing = spec_.socket_latency;
  place.plain = place.crossing == Duration{} && !shares_bus();
  if (!shares_bus()) return place;
  const auto [lane, fresh] = lane_of_.try_emplace(nic, static_cast<std::uint32_t>(lanes_.size()));
  place.lane = lane->second;
  if (!fresh) return place;
  const auto [bus, first] = bus_of_.try_emplace({node, host.nic_socket}, static_cast<std::uint32_t>(buses_.size()));
  if (first) buses_.emplace_back();
  buses_[bus->second].push_back(place.lane);
  lanes_.emplace_back().bus = bus->second;
  return place;
}

// As many NICs as are at work at `at` share the rate for all of the transfer.
Duration HostPaths::time_of(const Lane& lane, Direction way, Instant at, Bytes size) const {
  std::uint64_t at_work = 0;
  for (const std::uint32_t each : buses_[lane.bus]) {
    if (&lanes_[each] == &lane || lanes_[each].busy_until[way] > at) ++at_work;
  }
  const Rate share{std::max<std::uint64_t>(1, spec_.pcie_rate.bytes_per_s / at_work)};
  return transmission_time(size, std::min(share, spec_.link_rate));
}

bool HostPaths::queue(std::uint32_t lane, const Transfer& fetch, Instant now) {
  lanes_[lane].fetches.push(fetch);
  return has_slot(lane, now);
}

bool HostPaths::has_slot(std::uint32_t lane, Instant now) const {
  return !lanes_[lane].fetches.empty() && lanes_[lane].busy_until[from_memory] <= now;
}

HostPaths::Slot HostPaths::take(std::uint32_t number, Instant now) {
  DRYFLY_CHECK(has_slot(number, now));
  Lane& lane = lanes_[number];
  const Transfer fetch = lane.fetches.pop();
  lane.busy_until[from_memory] = now + time_of(lane, from_memory, now, fetch.size);
  return {fetch, lane.busy_until[from_memory]};
}

Duration HostPaths::arrival_lag(std::uint32_t number, Instant now, Bytes size) {
  if (!shares_bus() || size <= spec_.eager_max) return {};
  Lane& lane = lanes_[number];
  const Duration on_link = transmission_time(size, spec_.link_rate);
  const Instant began{now.ps - std::min(now.ps, on_link.ps)};
  const Instant there = std::max(lane.busy_until[to_memory], began) + time_of(lane, to_memory, began, size);
  lane.busy_until[to_memory] = there;
  return there > now ? there - now : Duration{};
}

}  // namespace dryfly::nic
