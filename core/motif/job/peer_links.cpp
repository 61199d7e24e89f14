#include "core/motif/job/peer_links.hpp"

#include <algorithm>

#include "core/motif/job/wires.hpp"
#include "core/nic/nic_spec.hpp"
#include "core/spec/fields.hpp"

namespace dryfly::motif {

GpuCosts GpuCosts::read(const Spec& spec, Duration step, Duration post, const std::string& joined) {
  if (!spec.has(fields::node_gpus) || !spec.has(fields::compute_gpu_latency_ps)) {
    throw SpecError("on_node = `gpu`: this machine says nothing of links between GPUs; accepted is memory or nic");
  }
  const auto count = static_cast<std::uint32_t>(spec.number(fields::node_gpus));
  GpuCosts costs{.count = count,
                 .copies = node_memory_spec(spec).gpus,
                 .joined = std::vector<bool>(std::size_t{count} * count, true),
                 .step = step,
                 .post = post,
                 .launch = Duration{spec.number(fields::compute_gpu_latency_ps)},
                 .nic = Wires::read(spec).rate};
  if (joined.empty()) return costs;
  if (joined.size() != costs.joined.size()) {
    throw SpecError("gpu_links = `" + joined + "`: accepted are " + std::to_string(costs.joined.size()) +
                    " of 0 and 1");
  }
  for (std::size_t pair = 0; pair < joined.size(); ++pair) costs.joined[pair] = joined[pair] == '1';
  return costs;
}

// A link is remembered as the work that it has been given, worked off without a pause.
Instant PeerLinks::carry(const GpuCosts& gpus, std::uint32_t source, std::uint32_t target, Bytes size, Instant from) {
  const std::uint32_t one = gpus.of(source % per_node_, per_node_), other = gpus.of(target % per_node_, per_node_);
  Instant* const links = &free_[std::size_t{source / per_node_} * gpus.count * gpus.count];
  const auto free = [&](std::uint32_t begin, std::uint32_t end) -> Instant& { return links[begin * gpus.count + end]; };
  const auto passed = [&](std::uint32_t begin, std::uint32_t end) {
    return std::max(free(begin, end), from) + transmission_time(size, gpus.rate(begin, end));
  };
  Instant first = never;
  std::uint32_t over = other;
  for (std::uint32_t step = 1; step < gpus.count && !gpus.are_joined(one, other); ++step) {
    const std::uint32_t gpu = (one + gpus.count - step) % gpus.count;
    if (gpu == other || !gpus.are_joined(one, gpu) || !gpus.are_joined(gpu, other)) continue;
    const Instant there = std::max(passed(one, gpu), passed(gpu, other));
    if (there >= first) continue;
    first = there;
    over = gpu;
  }
  if (over == other) return free(one, other) = passed(one, other);
  free(one, over) = passed(one, over);
  free(over, other) = passed(over, other);
  return std::max(first, from + transmission_time(size, gpus.rate(one, other)));
}

}  // namespace dryfly::motif
