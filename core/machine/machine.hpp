// The simulated machine, put together from its resolved spec: engine, topology, network, and the traffic to and from
// storage groups where the spec has any. Which model of the network it is, machine.cpp decides. NICs are not part of
// it, since the host to which they report has to be there before them, and is itself made of these parts.
#pragma once

#include <memory>

#include "core/contract/network.hpp"
#include "core/engine/engine.hpp"
#include "core/spec/spec.hpp"
#include "core/storage/storage_traffic.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly {

struct Machine {
  // SpecError if the spec is none of a machine. The slots of the engine are as wide as events are rare.
  explicit Machine(const Spec& spec, unsigned slot_width_bits = Engine::usual_slot_width_bits);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  // Where the job submits: the network, or its share of it beside storage.
  Carrier& carrier() { return storage ? static_cast<Carrier&>(storage->network()) : *network; }

  Engine engine;
  const Dragonfly topology;
  const std::unique_ptr<Network> network;
  std::unique_ptr<storage::StorageTraffic> storage;  // none: the job has the network for itself
};

}  // namespace dryfly
