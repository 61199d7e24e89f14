#include "core/nic/gpu_links.hpp"

#include <algorithm>

#include "core/spec/slow_parts.hpp"

namespace dryfly::nic {

std::uint32_t GpuLinks::join(NodeId node, std::uint8_t nic_gpu, std::uint8_t gpu) {
  const std::uint32_t card = (gpu - 1U) / spec_.gpu_tiles;
  const std::uint64_t share = SlowParts::share_of(spec_.slow_gpus, node.value * (spec_.gpus / spec_.gpu_tiles) + card);
  Rate rate = nic_gpu == 0 ? spec_.gpu_link : spec_.memory.gpus.rate({.from = nic_gpu, .to = gpu});
  if (nic_gpu == gpu) rate = {};
  if (share < SlowParts::whole_ppb) {
    const Rate left = SlowParts::of(spec_.gpu_link, share);
    if (rate.bytes_per_s == 0 || left.bytes_per_s < rate.bytes_per_s) rate = left;
  }
  if (rate.bytes_per_s == 0) return none;
  const auto [found, is_new] = number_of_.try_emplace({node, nic_gpu, card}, static_cast<std::uint32_t>(links_.size()));
  if (is_new) {
    Link& opened = links_.emplace_back();
    opened.rate = rate;
    opened.full_packet = transmission_time(spec_.framing.payload_max, rate);
  }
  Link& link = links_[found->second];
  ++link.nics;
  link.ahead = transmission_time(Bytes{2 * link.nics * spec_.framing.payload_max.count}, link.rate);
  return found->second;
}

Duration GpuLinks::time_of(const Link& link, Bytes size) const {
  return size == spec_.framing.payload_max ? link.full_packet : transmission_time(size, link.rate);
}

Instant GpuLinks::read(std::uint32_t number, Bytes size, Instant begin) {
  Link& link = links_[number];
  return link.read_until = std::max(link.read_until, begin) + time_of(link, size);
}

Instant GpuLinks::write(std::uint32_t number, Bytes size, Instant begin) {
  Link& link = links_[number];
  if (begin > link.written_until) {
    link.idle_from = link.written_until;
    link.written_until = link.busy_from = begin;
  }
  return link.written_until = link.written_until + time_of(link, size);
}

Instant GpuLinks::write_late(std::uint32_t number, Bytes size, Instant begin, Instant earliest) {
  Link& link = links_[number];
  const Instant from = std::max(link.idle_from, earliest);
  if (begin > link.written_until || from >= link.busy_from) return write(number, size, begin);
  const Duration time = time_of(link, size);
  const Duration early = std::min(time, link.busy_from - from);
  const Instant was_busy_from = link.busy_from;
  link.busy_from.ps -= early.ps;
  if (early == time) return was_busy_from;
  return link.written_until = link.written_until + Duration{time.ps - early.ps};
}

}  // namespace dryfly::nic
