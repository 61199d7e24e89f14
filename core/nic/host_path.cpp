#include "core/nic/host_path.hpp"

#include <algorithm>

namespace dryfly::nic {

namespace {

Instant early(Instant at, Duration ahead) { return Instant{at.ps - std::min(at.ps, ahead.ps)}; }

}  // namespace

MemoryPath HostPaths::place(NicId nic, NodeId node, const MemoryPlace& host) {
  MemoryPath place;
  const bool crosses = host.socket != host.nic_socket;
  const std::uint32_t processor =
      host.processor_socket == MemoryPlace::with_memory ? host.socket : host.processor_socket;
  if (crosses) place.crossing = spec_.socket_latency;
  if (processor != host.nic_socket) place.command = spec_.socket_latency;
  if (crosses && spec_.socket_rate.bytes_per_s != 0) {
    place.link_in = socket_link(node, host.nic_socket, host.socket);
    place.link_out = socket_link(node, host.socket, host.nic_socket);
  }
  const auto slow = spec_.slow_nics.find(nic);
  const bool has_lane = shares_bus() || slow != spec_.slow_nics.end();
  place.plain = !crosses && place.command == Duration{} && !has_lane;
  if (!has_lane && !gpu_links_.any()) return place;
  if (nic.value >= lane_of_.size()) lane_of_.resize(nic.value + std::size_t{1}, none);
  std::uint32_t& lane = lane_of_[nic.value];
  if (lane == none) {
    lane = static_cast<std::uint32_t>(lanes_.size());
    Lane& opened = lanes_.emplace_back();
    opened.counters = counters_.open(nic);
    opened.node = node;
    opened.nic_gpu = host.nic_gpu;
    put_on_bus(opened, nic, node, host.nic_socket);
  }
  if (has_lane) place.lane = lane;
  return place;
}

void HostPaths::put_on_bus(Lane& lane, NicId nic, NodeId node, std::uint32_t socket) {
  const auto slow = spec_.slow_nics.find(nic);
  lane.on_bus = shares_bus() || slow != spec_.slow_nics.end();
  if (!lane.on_bus) return;
  const auto [bus, first] = bus_of_.try_emplace({node, socket}, static_cast<std::uint32_t>(buses_.size()));
  if (first) buses_.emplace_back();
  Bus& joined = buses_[bus->second];
  ++joined.lanes;
  if (shares_bus()) {
    joined.ahead = transmission_time(Bytes{2 * joined.lanes * spec_.framing.payload_max.count}, spec_.pcie_rate);
  }
  lane.bus = bus->second;
  if (slow != spec_.slow_nics.end()) lane.own_rate = slow->second;
}

std::uint32_t HostPaths::gpu_link(Lane& lane, std::uint8_t gpu) {
  DRYFLY_CHECK(gpu <= gpus_max);
  if (gpu == 0 || !gpu_links_.any()) return GpuLinks::none;
  std::uint32_t& link = lane.gpu_links[1 + (gpu - 1U) / spec_.gpu_tiles];
  if (link == GpuLinks::none) link = gpu_links_.join(lane.node, lane.nic_gpu, gpu);
  return link;
}

std::uint32_t HostPaths::socket_link(NodeId node, std::uint32_t from, std::uint32_t to) {
  const auto [found, is_new] =
      socket_link_of_.try_emplace({node, from, to}, static_cast<std::uint32_t>(socket_links_.size()));
  if (!is_new) return found->second;
  const auto limited = crossing_rates_.find(node);
  SocketLink& link = socket_links_.emplace_back();
  link.node = node;
  link.rate = limited == crossing_rates_.end() ? spec_.socket_rate : limited->second;
  return found->second;
}

void HostPaths::limit_crossing(NodeId node, Rate rate) {
  crossing_rates_[node] = rate;
  for (SocketLink& link : socket_links_) {
    if (link.node == node) link.rate = rate;
  }
}

bool HostPaths::wait_to_cross(std::uint32_t number, const Transfer& transfer) {
  SocketLink& link = socket_links_[number];
  auto place = std::ranges::find(link.of_nic, transfer.source, [](const auto& each) { return each.first; });
  if (place == link.of_nic.end()) {
    link.of_nic.emplace_back();
    place = link.of_nic.end() - 1;
    place->first = transfer.source;
  }
  place->second.push(transfer);
  return ++link.waiting == 1;
}

Transfer HostPaths::next_to_cross(std::uint32_t number, Instant now) {
  SocketLink& link = socket_links_[number];
  DRYFLY_CHECK(link.waiting > 0);
  while (link.of_nic[link.next % link.of_nic.size()].second.empty()) ++link.next;
  const Transfer next = link.of_nic[link.next++ % link.of_nic.size()].second.pop();
  --link.waiting;
  link.until = std::max(link.until, now) + transmission_time(next.size, link.rate);
  return next;
}

Duration HostPaths::crossing_lag(const MemoryPath& path, std::uint32_t handle, Bytes payload, Instant now) {
  if (path.link_in == 0) return {};
  SocketLink& link = socket_links_[path.link_in];
  const auto set_out = set_out_.find(handle);
  const Instant began = set_out == set_out_.end() ? now : set_out->second;
  if (set_out != set_out_.end()) set_out_.erase(set_out);
  link.until = std::max(link.until, began) + transmission_time(payload, link.rate);
  return link.until > now ? link.until - now : Duration{};
}

void HostPaths::took(NicId nic, std::uint8_t memory, Bytes payload, Instant now) {
  const std::uint32_t number = lane_of(nic);
  if (number == none) return;
  Lane& lane = lanes_[number];
  const std::uint32_t link = gpu_link(lane, memory);
  if (!lane.on_bus && link == GpuLinks::none) return;
  const Duration on_link = link_.time_of(payload);
  const Instant began = early(now, on_link);
  Instant free = gpu_links_.writable_at(link);
  if (lane.on_bus) free = std::max({free, buses_[lane.bus].to_memory_until, lane.own_to_memory_until});
  count_wait(lane, Counter::parbs_tarb_pi_posted_blocked_cnt, lane.waited_to_memory_until, began, free);
  Instant there;
  if (link != GpuLinks::none) there = gpu_links_.write(link, payload, began);
  if (lane.on_bus) {
    Bus& bus = buses_[lane.bus];
    bus.to_memory_until = std::max(bus.to_memory_until, began) + pcie_.time_of(payload);
    there = std::max(there, bus.to_memory_until);
  }
  if (lane.own_rate.bytes_per_s != 0) {
    lane.own_to_memory_until = std::max(lane.own_to_memory_until, began) + transmission_time(payload, lane.own_rate);
    there = std::max(there, lane.own_to_memory_until);
  }
  lane.there = there;
}

void HostPaths::sends(NicId nic, std::uint8_t memory, Bytes payload, Instant now) {
  const std::uint32_t number = lane_of(nic);
  if (number == none) return;
  Lane& lane = lanes_[number];
  const std::uint32_t link = gpu_link(lane, memory);
  if (!lane.on_bus && link == GpuLinks::none) return;
  Instant free = gpu_links_.readable_at(link);
  if (lane.on_bus) free = std::max({free, buses_[lane.bus].from_memory_until, lane.own_from_memory_until});
  count_wait(lane, Counter::parbs_tarb_pi_non_posted_blocked_cnt, lane.waited_from_memory_until, now, free);
  if (link != GpuLinks::none) {
    lane.gpu_may_send = early(gpu_links_.read(link, payload, now), gpu_links_.ahead(link));
  }
  if (!lane.on_bus) return;
  Bus& bus = buses_[lane.bus];
  bus.from_memory_until = std::max(bus.from_memory_until, now) + pcie_.time_of(payload);
  lane.sent = bus.from_memory_until;
  if (lane.own_rate.bytes_per_s == 0) return;
  lane.own_from_memory_until = std::max(lane.own_from_memory_until, now) + transmission_time(payload, lane.own_rate);
  lane.sent = std::max(lane.sent, lane.own_from_memory_until);
}

void HostPaths::count_wait(const Lane& lane, Counter counter, Instant& counted_until, Instant now, Instant free) {
  const Instant from = std::max(now, counted_until);
  if (free <= from) return;
  counters_.spend(lane.counters, counter, free - from);
  counted_until = free;
}

Instant HostPaths::may_send(NicId nic) const {
  const std::uint32_t number = lane_of(nic);
  if (number == none) return {};
  const Lane& lane = lanes_[number];
  if (!lane.on_bus) return lane.gpu_may_send;
  Duration ahead = buses_[lane.bus].ahead;
  if (lane.own_rate.bytes_per_s != 0) {
    ahead = std::max(ahead, transmission_time(Bytes{2 * spec_.framing.payload_max.count}, lane.own_rate));
  }
  return std::max(lane.gpu_may_send, early(lane.sent, ahead));
}

Duration HostPaths::writing_lag(NicId nic, std::uint8_t gpu, Bytes payload) {
  const std::uint32_t number = lane_of(nic);
  const std::uint32_t link = number == none ? GpuLinks::none : gpu_link(lanes_[number], gpu);
  if (link == GpuLinks::none || payload == Bytes{0}) return {};
  const Instant now = counters_.now();
  const Duration on_link = link_.time_of(payload);
  Lane& lane = lanes_[number];
  const Duration since = now - lane.whole_until;
  const Instant begin = early(now, on_link);
  lane.whole_from = since < on_link ? early(lane.whole_from, {on_link.ps - since.ps}) : begin;
  lane.whole_until = now;
  const Instant there = gpu_links_.write_late(link, payload, begin, lane.whole_from);
  return there > now ? there - now : Duration{};
}

Duration HostPaths::arrival_lag(std::uint32_t number, Instant now) const {
  if (number == MemoryPath::no_lane) return {};
  const Instant there = lanes_[number].there;
  return there > now ? there - now : Duration{};
}

}  // namespace dryfly::nic
