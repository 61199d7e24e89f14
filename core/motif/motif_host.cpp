#include "core/motif/motif_host.hpp"

#include <utility>

namespace dryfly::generator {

MotifHost::MotifHost(Engine& engine, Nics& nics, const HostLatencies& latencies, EndpointId first)
    : engine_(engine),
      nics_(nics),
      latencies_(latencies),
      component_class_(engine.attach_host(*this)),
      next_endpoint_(first.value) {}

EndpointId MotifHost::open(NicId nic, NodeId node, const MemoryPlace& place) {
  const EndpointId endpoint{next_endpoint_++};
  nics_.open_endpoint(endpoint, nic, node, {}, place);
  return endpoint;
}

Token MotifHost::keep(Action action) {
  if (free_.empty()) {
    actions_.push_back(std::move(action));
    return actions_.size() - 1;
  }
  const std::uint32_t slot = free_.back();
  free_.pop_back();
  actions_[slot] = std::move(action);
  return slot;
}

// Actions of one instant run in the order of their slots, which are given out in the same order in every run.
void MotifHost::at(Instant instant, Action action) { engine_.schedule(instant, key(keep(std::move(action)))); }

void MotifHost::handle(Event event) {
  const auto slot = static_cast<std::uint32_t>(event.key);
  const Action action = std::exchange(actions_[slot], nullptr);
  free_.push_back(slot);
  action();
}

void MotifHost::visible(Token token) { engine_.schedule(latencies_.at_cpu(now()), key(token)); }

void MotifHost::send(EndpointId from, EndpointId to, Bytes size, std::uint64_t tag, Action sent) {
  const Token token = keep(std::move(sent));
  at(latencies_.at_nic(now()), [=, this] {
    nics_.send({.source = from, .target = to, .envelope = {.tagged = true, .tag = tag}, .size = size, .token = token});
  });
}

void MotifHost::receive(EndpointId endpoint, Bytes capacity, std::uint64_t tag, Action received) {
  const Token token = keep(std::move(received));
  at(latencies_.at_nic(now()),
     [=, this] { nics_.receive({.at = endpoint, .tagged = true, .tag = tag, .capacity = capacity, .token = token}); });
}

void MotifHost::rma(RmaKind kind, EndpointId from, EndpointId to, Bytes size, bool ordered, Action done) {
  const Token token = keep(std::move(done));
  at(latencies_.at_nic(now()), [=, this] {
    nics_.rma({.kind = kind, .source = from, .target = to, .size = size, .token = token, .ordered = ordered});
  });
}

}  // namespace dryfly::generator
