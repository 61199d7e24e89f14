#include "core/network/flow/flow_network.hpp"

#include "core/network/fabric/reach.hpp"
#include "core/network/flow/traffic.hpp"

namespace dryfly {

FlowNetwork::FlowNetwork(Engine& engine, const Dragonfly& dragonfly, const Spec& spec)
    : engine_(engine),
      dragonfly_(dragonfly),
      spec_(spec),
      traffic_(std::make_unique<flow::Traffic>(engine, dragonfly, spec_, std::nullopt, life_)) {
  engine.attach(ComponentClass::fabric, *this);
}

FlowNetwork::~FlowNetwork() = default;

void FlowNetwork::connect(TransferSink& sink) {
  DRYFLY_CHECK(sink_ == nullptr);
  sink_ = &sink;
  traffic_->connect(sink_, bus_);
}

void FlowNetwork::attach(HostBus& bus) {
  DRYFLY_CHECK(bus_ == nullptr);
  bus_ = &bus;
  traffic_->connect(sink_, bus_);
}

void FlowNetwork::submit(const Transfer& transfer) { traffic_->submit(transfer); }

bool FlowNetwork::at_rest() const { return traffic_->at_rest(); }

void FlowNetwork::restart(Instant start) {
  DRYFLY_CHECK(at_rest() && start >= engine_.now());
  traffic_ = std::make_unique<flow::Traffic>(engine_, dragonfly_, spec_, start, ++life_);
  traffic_->connect(sink_, bus_);
}

void FlowNetwork::end_faults() { traffic_->end_faults(); }

NetworkTotals FlowNetwork::totals() const { return traffic_->totals(); }

std::map<NicId, NicAccount> FlowNetwork::nic_accounts(Instant) const { return traffic_->accounts(); }

std::vector<LinkHealth> FlowNetwork::link_health(Instant until) const {
  flow::Losses* losses = traffic_->losses();
  return losses == nullptr ? std::vector<LinkHealth>{} : losses->faults().health(until.ps);
}

std::optional<std::pair<NicId, NicId>> FlowNetwork::cut_off(const std::vector<NicId>& nics) const {
  const flow::Losses* losses = traffic_->losses();
  if (losses == nullptr) return std::nullopt;
  return fabric::cut_off(nics, dragonfly_, losses->faults(), losses->manager());
}

std::optional<std::pair<NicId, std::string>> FlowNetwork::drained(const std::vector<NicId>& nics) const {
  if (!fabric::FaultPlan::any_in(spec_)) return std::nullopt;
  return fabric::drained(nics, dragonfly_, {dragonfly_, fabric::FabricSpec::read(spec_), spec_}, spec_);
}

void FlowNetwork::observe(NetworkObserver* observer) { traffic_->observe(observer); }

void FlowNetwork::handle(Event event) { traffic_->handle(event); }

}  // namespace dryfly
