// Several hosts behind one set of NICs, such as real ranks on some nodes and a motif on others: the NICs see one Host,
// and each host hears of its own end-points only. A run with one host gives that to the NICs and has none of this.
//
// End-points are shared out in ranges, since hosts choose the ids of theirs. On the engine each host takes a class of
// its own (Engine::attach_host).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/contract/host.hpp"
#include "core/unit/unit.hpp"

namespace dryfly {

class Hosts final : public Host {
 public:
  // The end-points from `first` on, so many, are this host's, which must outlive the last event. None of them is
  // another's.
  void add(Host& host, EndpointId first, std::uint32_t count) {
    const Share share{.first = first.value, .end = first.value + count, .host = &host};
    for (const Share& other : shares_) DRYFLY_CHECK(share.end <= other.first || other.end <= share.first);
    shares_.push_back(share);
  }

  void sent(EndpointId source, Token send) override { of(source).sent(source, send); }
  void received(const Received& received) override {
    DRYFLY_CHECK(&of(received.at) == &of(received.source));
    of(received.at).received(received);
  }
  void send_failed(EndpointId source, Token send, int error) override { of(source).send_failed(source, send, error); }
  void receive_failed(const Received& received, int error) override { of(received.at).receive_failed(received, error); }
  void peeked(const Peeked& peeked) override { of(peeked.at).peeked(peeked); }
  void cancelled(EndpointId at, Token receive) override { of(at).cancelled(at, receive); }
  void dropped(EndpointId source, Token send) override { of(source).dropped(source, send); }
  int apply(EndpointId source, Token rma) override { return of(source).apply(source, rma); }
  void rma_done(EndpointId source, Token rma, int error) override { of(source).rma_done(source, rma, error); }
  void needs_processor(EndpointId at, const Work& work) override { of(at).needs_processor(at, work); }
  void head_to_copy(const HeadToCopy& head) override { of(head.at).head_to_copy(head); }
  void joined(EndpointId at, Token join, std::uint32_t member, int error) override {
    of(at).joined(at, join, member, error);
  }
  void reduced(EndpointId at, Token part, int error) override { of(at).reduced(at, part, error); }
  DmaPages buffer_pages(EndpointId at, Token command) const override { return of(at).buffer_pages(at, command); }
  DmaPages target_pages(EndpointId source, Token rma) const override { return of(source).target_pages(source, rma); }
  void rma_delivered(const RmaCommand& command, bool on_node, std::uint32_t switch_hops) override {
    DRYFLY_CHECK(&of(command.source) == &of(command.target));
    of(command.source).rma_delivered(command, on_node, switch_hops);
  }

 private:
  struct Share {
    std::uint32_t first = 0;
    std::uint32_t end = 0;
    Host* host = nullptr;
  };

  Host& of(EndpointId endpoint) const {
    const auto found = std::find_if(shares_.begin(), shares_.end(), [&](const Share& share) {
      return share.first <= endpoint.value && endpoint.value < share.end;
    });
    DRYFLY_CHECK(found != shares_.end());
    return *found->host;
  }

  std::vector<Share> shares_;  // a handful
};

}  // namespace dryfly
