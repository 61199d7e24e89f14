#include "core/machine/machine.hpp"

#include "core/network/packet/packet_network.hpp"
#include "core/nic/nic_spec.hpp"

namespace dryfly {

Machine::Machine(const Spec& spec, unsigned slot_width_bits)
    : engine(slot_width_bits), topology(spec), network(std::make_unique<PacketNetwork>(engine, topology, spec)) {
  if (!storage::Plan::any_in(spec)) return;
  storage = std::make_unique<storage::StorageTraffic>(engine, *network, storage::Plan::read(spec, topology),
                                                      nic_spec(spec).framing);
}

}  // namespace dryfly
