// The network as flows, behind the contract of core/contract/network.hpp: what long transfers have of the links is a
// max-min share, found for all of them together whenever it may have changed; short ones travel whole. It knows of no
// packet by itself, so it takes less time the longer transfers are, and is exact only for what is alone.
//
// docs/model/flows.md says what each part rests on, what is left out, and how far it is from the packet model on the
// patterns on which the two were compared.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/contract/network.hpp"
#include "core/engine/engine.hpp"
#include "core/spec/spec.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly {

namespace flow {
class Traffic;
}  // namespace flow

class FlowNetwork final : public Network, private Handler {
 public:
  // Throws SpecError. The engine and the dragonfly must outlive it; it is the engine's handler of fabric events.
  FlowNetwork(Engine& engine, const Dragonfly& dragonfly, const Spec& spec);
  ~FlowNetwork() override;
  FlowNetwork(const FlowNetwork&) = delete;
  FlowNetwork& operator=(const FlowNetwork&) = delete;

  void connect(TransferSink& sink) override;
  void attach(HostBus& bus) override;
  void submit(const Transfer& transfer) override;
  bool takes_ordered() const override { return true; }
  bool at_rest() const override;
  void restart(Instant start) override;
  void end_faults() override;
  NetworkTotals totals() const override;
  // Flows have no trackers.
  std::map<NicId, NicTrackers> trackers_by_nic() const override { return {}; }
  // Without waits for room at the switch: flows know no credit.
  std::map<NicId, NicAccount> nic_accounts(Instant until) const override;
  std::vector<LinkHealth> link_health(Instant until) const override;
  std::optional<std::pair<NicId, NicId>> cut_off(const std::vector<NicId>& nics) const override;
  std::optional<std::pair<NicId, std::string>> drained(const std::vector<NicId>& nics) const override;
  void observe(NetworkObserver* observer) override;

  // For tests.
  const flow::Traffic& traffic() const { return *traffic_; }

 private:
  void handle(Event event) override;

  Engine& engine_;
  const Dragonfly& dragonfly_;
  const Spec spec_;
  TransferSink* sink_ = nullptr;
  HostBus* bus_ = nullptr;
  std::uint32_t life_ = 0;
  std::unique_ptr<flow::Traffic> traffic_;
};

}  // namespace dryfly
