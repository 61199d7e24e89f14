// For tests of the fabric: a sink that keeps what happened when, and a machine with everything put together.
#pragma once

#include <cstdint>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/network/packet/packet_network.hpp"
#include "core/topology/dragonfly.hpp"
#include "core/unit/random.hpp"
#include "testing/sample_machine.hpp"

namespace dryfly::fabric {

template <class Model>
struct RigOf : TransferSink, Handler {
  explicit RigOf(const SampleMachine& machine)
      : spec(machine.spec()), dragonfly(spec), network(engine, dragonfly, spec) {
    engine.attach(ComponentClass::workload, *this);
    network.connect(*this);
  }

  // Submits at an instant, by an event of the workload.
  void submit_at(std::uint64_t at_ps, Transfer transfer) {
    transfer.handle = static_cast<std::uint32_t>(transfers.size());
    transfers.push_back(transfer);
    submitted_ps.push_back(at_ps);
    outcomes.push_back({});
    engine.schedule(Instant{at_ps},
                    (static_cast<std::uint64_t>(ComponentClass::workload) << component_class_shift) | transfer.handle);
  }
  void handle(Event event) override {
    const auto handle = static_cast<std::uint32_t>(event.key);
    submitted_bytes += transfers[handle].size.count;
    network.submit(transfers[handle]);
  }

  void delivered(std::uint32_t handle, std::uint32_t switch_hops) override {
    DRYFLY_CHECK(outcomes[handle].delivered_ps == 0);
    outcomes[handle].delivered_ps = engine.now().ps;
    outcomes[handle].switch_hops = switch_hops;
    delivery_order.push_back(handle);
    fingerprint = mix(fingerprint ^ mix(engine.now().ps) ^ handle);
  }
  void acknowledged(std::uint32_t handle) override {
    DRYFLY_CHECK(outcomes[handle].delivered_ps != 0 && outcomes[handle].acknowledged_ps == 0);
    outcomes[handle].acknowledged_ps = engine.now().ps;
    ++acknowledged_count;
    fingerprint = mix(fingerprint ^ mix(engine.now().ps) ^ ~std::uint64_t{handle});
  }

  struct Outcome {
    std::uint64_t delivered_ps = 0;
    std::uint64_t acknowledged_ps = 0;
    std::uint32_t switch_hops = 0;
  };

  Spec spec;
  Engine engine;
  Dragonfly dragonfly;
  Model network;
  std::vector<Transfer> transfers;
  std::vector<std::uint64_t> submitted_ps;
  std::vector<Outcome> outcomes;
  std::vector<std::uint32_t> delivery_order;
  std::uint64_t submitted_bytes = 0;
  std::size_t acknowledged_count = 0;
  std::uint64_t fingerprint = 0;
};
using Rig = RigOf<PacketNetwork>;

inline Transfer transfer_between(std::uint32_t source, std::uint32_t target, std::uint64_t bytes, bool ordered = true) {
  Transfer transfer;
  transfer.source = {source};
  transfer.target = {target};
  transfer.size = {bytes};
  transfer.ordered = ordered;
  return transfer;
}

}  // namespace dryfly::fabric
