// The level `packet` of `dryfly predict`: loads are transfers of the machine's own network, with all that it has:
// buffers, credits, congestion management, classes, faults. What the cheaper levels are held against.
//
// Eager messages and requests are ordered, as MPI's envelopes are, payloads of rendezvous and accesses are not
// (docs/model/routing.md#what-is-ordered). Leaves out: transfers that a network with faults gives up, which ends
// the job.
#pragma once

#include "core/contract/network.hpp"
#include "core/engine/engine.hpp"
#include "core/motif/job/carriage.hpp"
#include "core/motif/job/wires.hpp"
#include "core/unit/pool.hpp"

namespace dryfly::motif {

class NetworkCarriage final : public Carriage, private TransferSink {
 public:
  NetworkCarriage(const Spec& spec, Engine& engine, Carrier& network);
  // Before the first load.
  void tell(CarriageListener& listener) { listener_ = &listener; }

  Bytes part() const override { return Bytes{~std::uint64_t{0}}; }
  bool answers_later() const override { return true; }
  std::optional<Carried> carry(const Load& load) override;

 private:
  void delivered(std::uint32_t handle, std::uint32_t switch_hops) override;
  void acknowledged(std::uint32_t) override {}
  void failed(std::uint32_t handle, bool delivered) override;

  Wires wires_;
  Engine& engine_;
  Carrier& network_;
  CarriageListener* listener_ = nullptr;
  Pool<Load> loads_;
};

}  // namespace dryfly::motif
