#include "core/motif/job/endpoints_carriage.hpp"

#include <algorithm>

namespace dryfly::motif {

EndpointsCarriage::EndpointsCarriage(const Spec& spec, const Dragonfly& topology)
    : wires_(Wires::read(spec)), topology_(topology), target_free_ps_(topology.nic_count()) {}

// A minimal way to another group is taken to begin and end with a local link: most do.
std::optional<Carried> EndpointsCarriage::carry(const Load& load) {
  const SwitchId from = topology_.switch_of(load.from);
  const SwitchId to = topology_.switch_of(load.to);
  std::uint64_t way_ps = 0;
  if (load.from != load.to) {
    const bool one_group = topology_.group_of(from) == topology_.group_of(to);
    way_ps = one_group ? wires_.way_ps(from == to ? 0 : 1, 0) : wires_.way_ps(2, 1);
  }
  const std::uint64_t serial_ps = wires_.serialisation_ps(load.size);
  std::uint64_t& free_ps = target_free_ps_[load.to.value];
  free_ps = std::max(free_ps, load.ready.ps + way_ps) + serial_ps;
  return Carried{.left = load.ready + Duration{serial_ps},
                 .arrived = Instant{free_ps},
                 .answered = Instant{free_ps + way_ps + wires_.ack_ps}};
}

}  // namespace dryfly::motif
