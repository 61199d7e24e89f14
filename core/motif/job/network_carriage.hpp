// The level `packet` of `dryfly predict`: loads are transfers of the machine's own network, with all that it has:
// buffers, credits, congestion management, classes, faults, and behind them the PCIe that the NICs of a socket share,
// as real ranks have it (core/nic/host_path.hpp). What the cheaper levels are held against.
//
// Eager messages and requests are ordered, as MPI's envelopes are, payloads of rendezvous and accesses are not
// (docs/model/routing.md#what-is-ordered). Leaves out: transfers that a network with faults gives up, which ends
// the job; and the link between sockets, as a rank is taken to be on its NIC's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/contract/network.hpp"
#include "core/engine/engine.hpp"
#include "core/motif/job/carriage.hpp"
#include "core/motif/job/wires.hpp"
#include "core/nic/counter_bank.hpp"
#include "core/nic/host_path.hpp"
#include "core/nic/nic_spec.hpp"
#include "core/topology/dragonfly.hpp"
#include "core/unit/pool.hpp"

namespace dryfly::motif {

class NetworkCarriage final : public Carriage, private TransferSink {
 public:
  NetworkCarriage(const Spec& spec, const Dragonfly& topology, Engine& engine, Carrier& network);
  // Before the first load.
  void tell(CarriageListener& listener) { listener_ = &listener; }

  Bytes part() const override { return Bytes{~std::uint64_t{0}}; }
  bool answers_later() const override { return true; }
  std::optional<Carried> carry(const Load& load) override;

 private:
  static constexpr std::uint32_t not_asked = MemoryPath::no_lane - 1;

  // Of that NIC, on the bus of its socket.
  std::uint32_t lane_of(NicId nic);
  void delivered(std::uint32_t handle, std::uint32_t switch_hops) override;
  void acknowledged(std::uint32_t) override {}
  void failed(std::uint32_t handle, bool delivered) override;

  const Spec& spec_;
  Wires wires_;
  const Dragonfly& topology_;
  Engine& engine_;
  Carrier& network_;
  CarriageListener* listener_ = nullptr;
  Pool<Load> loads_;
  const NicSpec nic_spec_;
  const std::vector<std::uint32_t> nic_sockets_;  // by the NIC's number on its node
  nic::CounterBank counters_;
  nic::HostPaths paths_;
  std::vector<std::uint32_t> lanes_;  // of each NIC, once it has sent or taken anything
};

}  // namespace dryfly::motif
