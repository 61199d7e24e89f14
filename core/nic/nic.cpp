#include "core/nic/nic.hpp"

#include "core/nic/get_queues.hpp"
#include "core/nic/messages.hpp"
#include "core/nic/reductions.hpp"
#include "core/nic/remote_memory.hpp"
#include "core/nic/transport.hpp"

namespace dryfly {

struct Nics::Implementation final : nic::Recipient, nic::GetQueues::Owner {
  Implementation(Engine& engine_of_run, Carrier& network, Host& host, const NicSpec& nic_spec)
      : engine(engine_of_run),
        spec(nic_spec),
        get_queues(network, spec.get_queues, *this),
        transport(engine, get_queues, spec, *this),
        messages(transport, host, spec, totals),
        remote_memory(transport, host, spec, totals),
        reductions(engine, transport, host, spec) {
    DRYFLY_CHECK(spec.inline_max <= spec.eager_max);
    DRYFLY_CHECK(spec.rendezvous_head <= spec.eager_max);  // so that a rendezvous always has something left to get
  }

  static bool is_one_sided(nic::Parcel parcel) {
    return parcel.step == nic::Step::rma_request || parcel.step == nic::Step::rma_response;
  }

  void arrived(nic::Parcel parcel, std::uint32_t switch_hops) override {
    if (is_one_sided(parcel)) return remote_memory.arrived(parcel, switch_hops);
    if (parcel.step == nic::Step::collective) return reductions.arrived(parcel);
    messages.arrived(parcel, switch_hops);
  }

  nic::Landing landing_of(nic::Parcel parcel) const override {
    return is_one_sided(parcel) ? remote_memory.landing_of(parcel) : messages.landing_of(parcel);
  }

  void soon(nic::Parcel parcel, unsigned stage) const override {
    if (!is_one_sided(parcel) && parcel.step != nic::Step::collective) messages.soon(parcel, stage);
  }

  void acknowledged(nic::Parcel parcel) override {
    if (is_one_sided(parcel)) return remote_memory.acknowledged(parcel);
    if (parcel.step == nic::Step::collective) return reductions.acknowledged(parcel);
    messages.acknowledged(parcel);
  }

  // Only memory operations ask for it.
  void flushed(nic::Parcel parcel) override { remote_memory.flushed(parcel); }

  bool is_asked_by_software(std::uint32_t message) const override { return messages.is_got_by_software(message); }
  void begins(std::uint32_t handle) override { transport.paths().sets_out_now(handle, engine.now()); }

  void failed(nic::Parcel parcel, bool delivered) override {
    if (is_one_sided(parcel)) return remote_memory.failed(parcel, delivered);
    if (parcel.step == nic::Step::collective) return reductions.failed(parcel, delivered);
    messages.failed(parcel, delivered);
  }

  Engine& engine;
  const NicSpec spec;
  NicTotals totals;
  nic::GetQueues get_queues;
  nic::Transport transport;
  nic::Messages messages;
  nic::RemoteMemory remote_memory;
  nic::Reductions reductions;
};

Nics::Nics(Engine& engine, Carrier& network, Host& host, const NicSpec& spec)
    : implementation_(std::make_unique<Implementation>(engine, network, host, spec)) {}
Nics::~Nics() = default;

void Nics::open_endpoint(EndpointId endpoint, NicId nic, NodeId node, const EndpointSettings& settings,
                         const MemoryPlace& place) {
  implementation_->transport.open(endpoint, nic, node, place, settings);
  implementation_->messages.open(endpoint, nic, settings);
}

void Nics::move_endpoint(EndpointId endpoint, const MemoryPlace& place) {
  implementation_->transport.move(endpoint, place);
}
void Nics::limit_crossing(NodeId node, Rate rate) { implementation_->transport.paths().limit_crossing(node, rate); }

void Nics::close_endpoint(EndpointId endpoint) { implementation_->messages.close(endpoint); }
void Nics::send(const SendCommand& command) { implementation_->messages.send(command); }
void Nics::receive(const ReceiveCommand& command) { implementation_->messages.receive(command); }
void Nics::peek(const PeekCommand& command) { implementation_->messages.peek(command); }
void Nics::receive_claimed(const ReceiveCommand& command, Token claim) {
  implementation_->messages.receive_claimed(command, claim);
}
void Nics::cancel(EndpointId at, Token receive) { implementation_->messages.cancel(at, receive); }
void Nics::worked(EndpointId at, const Work& work) {
  if (work.kind == WorkKind::collective) return implementation_->reductions.worked(at, work);
  implementation_->messages.worked(at, work);
}
void Nics::rma(const RmaCommand& command) { implementation_->remote_memory.start(command); }

std::uint32_t Nics::open_group(const GroupTree& tree) { return implementation_->reductions.open(tree); }
void Nics::close_group(std::uint32_t group) { implementation_->reductions.close(group); }
void Nics::join(const JoinCommand& command) { implementation_->reductions.join(command); }
void Nics::contribute(const ContributeCommand& command) { implementation_->reductions.contribute(command); }
const NicSpec& Nics::spec() const { return implementation_->spec; }
NicId Nics::nic_of(EndpointId endpoint) const { return implementation_->transport.nic_of(endpoint); }
CollectiveTotals Nics::collective_totals() const { return implementation_->reductions.totals(); }

void Nics::restart() {
  DRYFLY_CHECK(at_rest());
  implementation_->totals = {};
  implementation_->get_queues.restart();
  implementation_->transport.counters().restart();
  implementation_->transport.paths().translations().restart();
  implementation_->messages.restart();
  implementation_->remote_memory.restart();
  implementation_->reductions.restart();
}

NicTotals Nics::totals() const { return implementation_->totals; }
std::vector<NicCounters> Nics::counters() const { return implementation_->transport.counters().sorted(); }
std::uint64_t Nics::events_scheduled() const { return implementation_->transport.events().scheduled; }
std::uint64_t Nics::events_pending() const {
  const nic::Transport::Events& events = implementation_->transport.events();
  return events.scheduled - events.handled;
}
bool Nics::at_rest() const {
  return implementation_->messages.at_rest() && implementation_->remote_memory.at_rest() &&
         implementation_->reductions.at_rest();
}

}  // namespace dryfly
