// Commands given to the NICs of a machine straight away, without processes and without MPI: for measurements below
// MPI, such as those of the cxi_* diagnostics (docs/model/measurements.md#provider-diagnostics), and for patterns
// over more NICs than processes fit on one computer.
//
// A command reaches its NIC command_latency after it is given, and what a NIC reports is seen completion_latency
// later, as for a real process. Software costs nothing unless the pattern adds it.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/engine/engine.hpp"
#include "core/network/packet/packet_network.hpp"
#include "core/nic/nic.hpp"
#include "core/spec/spec.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly::generator {

class Stand final : private Handler, private Host {
 public:
  using Action = std::function<void()>;

  explicit Stand(const Spec& spec);

  const Spec& spec() const { return spec_; }
  const Dragonfly& topology() const { return topology_; }
  Instant now() const { return engine_.now(); }
  EndpointId open(NicId nic);
  // Runs until nothing is left to do.
  void run() { engine_.run(never); }

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
  void send_failed(EndpointId, Token, int) override { DRYFLY_CHECK(false && "no pattern has faults"); }
  void receive_failed(const Received&, int) override { DRYFLY_CHECK(false && "no pattern has faults"); }
  void peeked(const Peeked&) override {}
  void cancelled(EndpointId, Token) override {}
  void dropped(Token) override {}
  int apply(Token) override { return 0; }
  void rma_done(EndpointId, Token rma, int) override { visible(rma); }
  void needs_processor(EndpointId, const Work&) override { DRYFLY_CHECK(false && "no pattern exhausts a NIC"); }
  void rma_delivered(const RmaCommand&, bool, std::uint32_t) override {}

  Token keep(Action action);
  void visible(Token token);

  const Spec& spec_;
  Engine engine_;
  Dragonfly topology_;
  PacketNetwork network_;
  Nics nics_;
  std::vector<std::uint32_t> nic_sockets_;  // by the NIC's number on its node
  Duration command_latency_;
  Duration completion_latency_;
  std::vector<Action> actions_;
  std::vector<std::uint32_t> free_;
  std::uint32_t endpoints_ = 0;
};

}  // namespace dryfly::generator
