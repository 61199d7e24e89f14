// The host of motifs: gives commands to NICs straight away, without processes and without MPI, and calls back when they
// are over. A command reaches its NIC command_latency after it is given, and what a NIC reports is seen
// completion_latency later, as for a real process. Software costs nothing unless the motif adds it.
//
// Left out: failures, lack of list entries and of buffers, which no motif has.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/contract/host.hpp"
#include "core/contract/memory.hpp"
#include "core/engine/engine.hpp"
#include "core/host/cpu_costs.hpp"
#include "core/nic/nic.hpp"

namespace dryfly::generator {

class MotifHost final : public Host, private Handler {
 public:
  using Action = std::function<void()>;

  // `nics` may be constructed later; nothing is asked of them before the first command. Its end-points are those from
  // `first` on.
  MotifHost(Engine& engine, Nics& nics, const HostLatencies& latencies, EndpointId first = {});

  Instant now() const { return engine_.now(); }
  EndpointId open(NicId nic, NodeId node, const MemoryPlace& place = {});

  // At a later instant, or now, behind what happens in the network then.
  void at(Instant instant, Action action);
  // A message goes to the receive of its tag that was posted first.
  void send(EndpointId from, EndpointId to, Bytes size, std::uint64_t tag, Action sent);
  void receive(EndpointId at, Bytes capacity, std::uint64_t tag, Action received);
  void rma(RmaKind kind, EndpointId from, EndpointId to, Bytes size, bool ordered, Action done);

 private:
  void handle(Event event) override;
  void sent(EndpointId, Token send) override { visible(send); }
  void received(const Received& received) override { visible(received.receive); }
  void send_failed(EndpointId, Token, int) override { DRYFLY_UNREACHABLE("no motif has faults"); }
  void receive_failed(const Received&, int) override { DRYFLY_UNREACHABLE("no motif has faults"); }
  void peeked(const Peeked&) override {}
  void cancelled(EndpointId, Token) override {}
  void dropped(EndpointId, Token) override {}
  int apply(EndpointId, Token) override { return 0; }
  void rma_done(EndpointId, Token rma, int) override { visible(rma); }
  void needs_processor(EndpointId, const Work&) override { DRYFLY_UNREACHABLE("no motif exhausts a NIC"); }
  void rma_delivered(const RmaCommand&, bool, std::uint32_t) override {}

  Token keep(Action action);
  void visible(Token token);
  std::uint64_t key(Token token) const {
    return static_cast<std::uint64_t>(component_class_) << component_class_shift | token;
  }

  Engine& engine_;
  Nics& nics_;
  HostLatencies latencies_;
  ComponentClass component_class_;
  std::uint32_t next_endpoint_;
  std::vector<Action> actions_;
  std::vector<std::uint32_t> free_;
};

}  // namespace dryfly::generator
