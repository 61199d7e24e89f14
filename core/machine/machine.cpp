#include "core/machine/machine.hpp"

#include "core/network/flow/flow_network.hpp"
#include "core/network/packet/packet_network.hpp"
#include "core/nic/nic_spec.hpp"
#include "core/spec/fields.hpp"

namespace dryfly {
namespace {

std::unique_ptr<Network> make_network(Engine& engine, const Dragonfly& topology, const Spec& spec) {
  if (spec.has(fields::fabric_model) && spec.text(fields::fabric_model) == "flow") {
    return std::make_unique<FlowNetwork>(engine, topology, spec);
  }
  return std::make_unique<PacketNetwork>(engine, topology, spec);
}

}  // namespace

Machine::Machine(const Spec& spec, unsigned slot_width_bits)
    : engine(slot_width_bits), topology(spec), network(make_network(engine, topology, spec)) {
  if (!storage::Plan::any_in(spec)) return;
  storage = std::make_unique<storage::StorageTraffic>(engine, *network, storage::Plan::read(spec, topology),
                                                      nic_spec(spec).framing);
}

}  // namespace dryfly
