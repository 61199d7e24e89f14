// The network at packet level, behind the contract of core/contract/network.hpp: NIC ports, links with credits,
// switches, routing. A transfer goes, in the order of the files: nic_ports (cut into packets), links (serialisation,
// flight), switches with output_queues, credits and routing, links again, nic_ports (count, acknowledge), and the
// acknowledgement back by the same switches.
//
// Unloaded, everything happens at instants that oracle/unloaded.hpp gives in closed form, to the picosecond.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/contract/network.hpp"
#include "core/contract/observer.hpp"
#include "core/engine/engine.hpp"
#include "core/spec/spec.hpp"
#include "core/topology/dragonfly.hpp"

namespace dryfly {

namespace fabric {
struct Region;
struct Crossing;
}  // namespace fabric

class PacketNetwork final : public Network, private Handler {
 public:
  // Throws SpecError. The engine and the dragonfly must outlive it; it is the engine's handler of fabric events.
  PacketNetwork(Engine& engine, const Dragonfly& dragonfly, const Spec& spec);
  // One region of a network: the group of `region`, its NICs and its end of each link. Without faults. It takes
  // unordered transfers only, is neither restarted nor observed, and whether it is at rest only all regions know.
  PacketNetwork(Engine& engine, const Dragonfly& dragonfly, const Spec& spec, const fabric::Region& region);
  ~PacketNetwork() override;
  PacketNetwork(const PacketNetwork&) = delete;
  PacketNetwork& operator=(const PacketNetwork&) = delete;

  void connect(TransferSink& sink) override;
  void attach(HostBus& bus) override;
  void submit(const Transfer& transfer) override;
  bool takes_ordered() const override;
  bool at_rest() const override;
  void restart(Instant start) override;
  void end_faults() override;
  NetworkTotals totals() const override;
  std::map<NicId, NicTrackers> trackers_by_nic() const override;
  std::map<NicId, NicAccount> nic_accounts(Instant until) const override;
  std::vector<LinkHealth> link_health(Instant until) const override;
  std::optional<std::pair<NicId, NicId>> cut_off(const std::vector<NicId>& nics) const override;
  std::optional<std::pair<NicId, std::string>> drained(const std::vector<NicId>& nics) const override;
  void observe(NetworkObserver* observer) override;

  // What another region has sent. Its instant must not lie before engine.now().
  void receive(const fabric::Crossing& crossing);
  // Packets and transfers taken less given back by this region, modulo 2^32; the sum over all regions counts them.
  std::uint32_t balance() const;

  // Bytes of credit that are not back at their senders at engine.now(), over all links. Looks at every link: for
  // tests and reports. 0 whenever at_rest().
  std::uint64_t credit_bytes_outstanding() const;

 private:
  void handle(Event event) override;
  void prefetch(Event event, unsigned stage) const override;
  [[gnu::noinline]] void handle_observed(Event event);

  struct Parts;

  Engine& engine_;
  const Dragonfly& dragonfly_;
  const Spec spec_;
  TransferSink* sink_ = nullptr;
  HostBus* bus_ = nullptr;
  NetworkObserver* observer_ = nullptr;
  std::unique_ptr<Parts> parts_;
};

}  // namespace dryfly
