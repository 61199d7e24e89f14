#include "core/motif/job/peer_links.hpp"

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

}  // namespace dryfly::motif
