// Where the tests put the NICs: the fake network and a host that writes down what it is told.
//
// The figures are round and unlike each other, so that each derivation in the tests has one reading:
//   egress 100 ns, DMA read 300 ns, ingress 200 ns, command interval 10 ns, flight 1,000 ns, acknowledgement 700 ns
//   after delivery, a copy of memory 50 ns and 1 GB/s (1 ns a byte).
// End-points 0 and 1 share NIC 0 of node 0; 2 is alone on NIC 1, node 1; 3 on NIC 2, also node 1.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/nic/nic.hpp"
#include "testing/fake_network.hpp"

namespace dryfly::nic {

constexpr std::uint64_t ns = 1000;

class TestStand : public Host, public Handler {
 public:
  explicit TestStand(const NicSpec& spec = round_figures()) : network(engine), nics(engine, network, *this, spec) {
    engine.attach(ComponentClass::host, *this);
    nics.open_endpoint(EndpointId{0}, NicId{0}, NodeId{0});
    nics.open_endpoint(EndpointId{1}, NicId{0}, NodeId{0});
    nics.open_endpoint(EndpointId{2}, NicId{1}, NodeId{1});
    nics.open_endpoint(EndpointId{3}, NicId{2}, NodeId{1});
  }

  // 14 and 15 talk to each other through the memory of node 1, 16 is one of the same kind on node 0.
  void open_in_memory() {
    nics.open_endpoint(EndpointId{14}, NicId{5}, NodeId{1}, {.in_memory = true});
    nics.open_endpoint(EndpointId{15}, NicId{5}, NodeId{1}, {.in_memory = true});
    nics.open_endpoint(EndpointId{16}, NicId{6}, NodeId{0}, {.in_memory = true});
  }

  static NicSpec round_figures() {
    return {.inline_max = Bytes{192},
            .pushed_max = Bytes{96},
            .eager_max = Bytes{18'433},
            .rendezvous_head = Bytes{2048},
            .egress_latency = {100 * ns},
            .dma_read_latency = {300 * ns},
            .ingress_latency = {200 * ns},
            .command_interval = {10 * ns},
            .memory = {.copy = {50 * ns}, .copy_rate = {1'000'000'000}}};
  }

  void at(std::uint64_t ps, std::function<void()> action) {
    actions_.push_back(std::move(action));
    engine.schedule(Instant{ps},
                    static_cast<std::uint64_t>(ComponentClass::host) << component_class_shift | (actions_.size() - 1));
  }
  void handle(Event event) override { actions_[event.key & 0xffffffff](); }
  void run() { engine.run(never); }

  // Lines are "nanoseconds what token ...".
  void sent(EndpointId source, Token send) override {
    note("sent " + std::to_string(send) + " from " + std::to_string(source.value));
  }
  void received(const Received& message) override {
    CHECK(message.switch_hops == hops_between(message.source, message.at));
    note("received " + std::to_string(message.send) + " in " + std::to_string(message.receive) + " at " +
         std::to_string(message.at.value));
    all_received.push_back(message);
  }
  void send_failed(EndpointId source, Token send, int error) override {
    note("send_failed " + std::to_string(send) + " from " + std::to_string(source.value) + " error " +
         std::to_string(error));
  }
  void receive_failed(const Received& message, int error) override {
    note("receive_failed " + std::to_string(message.receive) + " at " + std::to_string(message.at.value) + " error " +
         std::to_string(error));
  }
  void peeked(const Peeked& answer) override {
    note("peeked " + std::to_string(answer.peek) + (answer.found ? " found " + std::to_string(answer.send) : " none"));
    all_peeked.push_back(answer);
  }
  void cancelled(EndpointId, Token receive) override { note("cancelled " + std::to_string(receive)); }
  void dropped(EndpointId, Token send) override { note("dropped " + std::to_string(send)); }
  int apply(EndpointId, Token rma) override {
    note("apply " + std::to_string(rma));
    return apply_error;
  }
  void rma_done(EndpointId source, Token rma, int error) override {
    note("rma_done " + std::to_string(rma) + " from " + std::to_string(source.value) + " error " +
         std::to_string(error));
  }
  void needs_processor(EndpointId at, const Work& work) override { all_work.emplace_back(at, work); }
  void head_to_copy(const HeadToCopy& head) override {
    note("head of " + std::to_string(head.size.count) + " in " + std::to_string(head.receive));
  }
  void rma_delivered(const RmaCommand& command, bool on_node, std::uint32_t switch_hops) override {
    note("rma_delivered " + std::to_string(command.token) + (on_node ? " on-node" : ""));
    CHECK(switch_hops == hops_between(command.source, command.target));
  }

  using Log = std::vector<std::string>;

  Engine engine;
  FakeNetwork network;
  Nics nics;
  Log log;
  std::vector<Received> all_received;
  std::vector<Peeked> all_peeked;
  std::vector<std::pair<EndpointId, Work>> all_work;
  int apply_error = 0;
  bool round_instants = true;  // all are of whole nanoseconds

 private:
  // The fake network's.
  std::uint32_t hops_between(EndpointId a, EndpointId b) const { return nics.nic_of(a) == nics.nic_of(b) ? 0 : 3; }
  void note(const std::string& what) {
    CHECK((!round_instants || engine.now().ps % ns == 0));
    log.push_back(std::to_string(engine.now().ps / ns) + " " + what);
  }
  std::vector<std::function<void()>> actions_;
};

inline SendCommand message(std::uint32_t source, std::uint32_t target, std::uint64_t size, Token token,
                           std::uint64_t tag = 0) {
  return {.source = EndpointId{source},
          .target = EndpointId{target},
          .envelope = {.tagged = true, .tag = tag},
          .size = Bytes{size},
          .token = token};
}

inline SendCommand untagged(SendCommand command) {
  command.envelope.tagged = false;
  return command;
}

inline ReceiveCommand receive_of(std::uint32_t at, Token token, std::uint64_t tag = 0,
                                 std::uint64_t capacity = 1'000'000) {
  return {.at = EndpointId{at}, .tagged = true, .tag = tag, .capacity = Bytes{capacity}, .token = token};
}

}  // namespace dryfly::nic
