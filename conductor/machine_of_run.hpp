// The machine that a run is on, but for its NICs, whose host has to be there before them.
#pragma once

#include <memory>

#include "core/engine/engine.hpp"
#include "core/network/packet/packet_network.hpp"
#include "core/nic/nic_spec.hpp"
#include "core/spec/spec.hpp"
#include "core/storage/storage_traffic.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly {

struct MachineOfRun {
  explicit MachineOfRun(const Spec& spec) : topology(spec), network(engine, topology, spec) {
    if (!storage::Plan::any_in(spec)) return;
    storage = std::make_unique<storage::StorageTraffic>(engine, network, storage::Plan::read(spec, topology),
                                                        nic_spec(spec).framing);
  }
  // Where the job submits.
  Carrier& carrier() { return storage ? static_cast<Carrier&>(storage->network()) : network; }

  // Ranks give a few events for each nanosecond: slots of 4 ns hold enough of them for the engine to look ahead.
  Engine engine{12};
  Dragonfly topology;
  PacketNetwork network;
  std::unique_ptr<storage::StorageTraffic> storage;  // none: the job has the network for itself
};

}  // namespace dryfly
