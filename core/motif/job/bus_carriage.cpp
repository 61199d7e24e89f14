#include "core/motif/job/bus_carriage.hpp"

#include <algorithm>
#include <utility>

#include "core/nic/nic_spec.hpp"
#include "core/spec/fields.hpp"

namespace dryfly::motif {

bool BusCarriage::is_in(const Spec& spec) { return spec.has(fields::node_pcie_rate_bytes_per_s); }

BusCarriage::BusCarriage(const Spec& spec, const Dragonfly& topology, std::unique_ptr<Carriage> inner)
    : inner_(std::move(inner)),
      topology_(topology),
      rate_{spec.number(fields::node_pcie_rate_bytes_per_s)},
      nic_sockets_(nic_sockets(spec)) {
  for (const std::uint32_t socket : nic_sockets_) sockets_ = std::max(sockets_, socket + 1);
  buses_.resize(std::size_t{topology.node_count()} * sockets_);
}

BusCarriage::Bus& BusCarriage::bus_of(NicId nic) {
  const NodeId node = topology_.node_of(nic);
  const std::uint32_t index = nic.value - topology_.nic_of(node, 0).value;
  const std::uint32_t socket = index < nic_sockets_.size() ? nic_sockets_[index] : 0;
  return buses_[std::size_t{node.value} * sockets_ + socket];
}

std::optional<Carried> BusCarriage::carry(const Load& load) {
  const std::uint64_t takes_ps = transmission_time(load.size, rate_).ps;
  Backlog& out = bus_of(load.from).out;
  Load later = load;
  later.ready = load.ready + Duration{out.left_ps(load.ready.ps)};
  out.add(load.ready.ps, takes_ps);
  std::optional<Carried> times = inner_->carry(later);
  if (times->sent_again) return times;
  Backlog& in = bus_of(load.to).in;
  const std::uint64_t waits_ps = in.left_ps(times->arrived.ps);
  in.add(times->arrived.ps, takes_ps);
  times->arrived = times->arrived + Duration{waits_ps};
  times->answered = times->answered + Duration{waits_ps};
  return times;
}

}  // namespace dryfly::motif
