#include "core/motif/stand.hpp"

#include <utility>

#include "core/nic/nic_spec.hpp"
#include "core/spec/fields.hpp"

namespace dryfly::generator {

Stand::Stand(const Spec& spec)
    : spec_(spec),
      topology_(spec),
      network_(engine_, topology_, spec),
      nics_(engine_, network_, *this, nic_spec(spec)),
      nic_sockets_(nic_sockets(spec)),
      command_latency_{spec.number(fields::nic_command_latency_ps)},
      completion_latency_{spec.number(fields::nic_completion_latency_ps)} {
  engine_.attach(ComponentClass::host, *this);
}

EndpointId Stand::open(NicId nic) {
  const EndpointId endpoint{endpoints_++};
  // Who gives the commands is on the NIC's own socket.
  const NodeId node = topology_.node_of(nic);
  const std::uint32_t index = topology_.index_in_node(nic);
  const std::uint32_t socket = index < nic_sockets_.size() ? nic_sockets_[index] : 0;
  nics_.open_endpoint(endpoint, nic, node, {}, {.socket = socket, .nic_socket = socket});
  return endpoint;
}

Token Stand::keep(Action action) {
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
void Stand::at(Instant instant, Action action) {
  engine_.schedule(instant,
                   static_cast<std::uint64_t>(ComponentClass::host) << component_class_shift | keep(std::move(action)));
}

void Stand::handle(Event event) {
  const auto slot = static_cast<std::uint32_t>(event.key);
  const Action action = std::exchange(actions_[slot], nullptr);
  free_.push_back(slot);
  action();
}

void Stand::visible(Token token) {
  engine_.schedule(now() + completion_latency_,
                   static_cast<std::uint64_t>(ComponentClass::host) << component_class_shift | token);
}

void Stand::send(EndpointId from, EndpointId to, Bytes size, std::uint64_t tag, Action sent) {
  const Token token = keep(std::move(sent));
  at(now() + command_latency_, [=, this] {
    nics_.send({.source = from, .target = to, .envelope = {.tagged = true, .tag = tag}, .size = size, .token = token});
  });
}

void Stand::receive(EndpointId endpoint, Bytes capacity, std::uint64_t tag, Action received) {
  const Token token = keep(std::move(received));
  at(now() + command_latency_,
     [=, this] { nics_.receive({.at = endpoint, .tagged = true, .tag = tag, .capacity = capacity, .token = token}); });
}

void Stand::rma(RmaKind kind, EndpointId from, EndpointId to, Bytes size, bool ordered, Action done) {
  const Token token = keep(std::move(done));
  at(now() + command_latency_, [=, this] {
    nics_.rma({.kind = kind, .source = from, .target = to, .size = size, .token = token, .ordered = ordered});
  });
}

}  // namespace dryfly::generator
