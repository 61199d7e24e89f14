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
struct LinkHealth;
}  // namespace fabric

class PacketNetwork final : public Network, private Handler {
 public:
  // Throws SpecError. The engine and the dragonfly must outlive it; it is the engine's handler of fabric events.
  PacketNetwork(Engine& engine, const Dragonfly& dragonfly, const Spec& spec);
  // One region of a network: the group of `region`, its NICs and its end of each link. Without faults.
  PacketNetwork(Engine& engine, const Dragonfly& dragonfly, const Spec& spec, const fabric::Region& region);
  ~PacketNetwork() override;
  PacketNetwork(const PacketNetwork&) = delete;
  PacketNetwork& operator=(const PacketNetwork&) = delete;

  void connect(TransferSink& sink) override;
  void submit(const Transfer& transfer) override;
  NetworkTotals totals() const override;
  // Of the NICs that have had any; their sum is network_timeouts of the totals.
  std::map<NicId, NicTimeouts> timeouts_by_nic() const;
  // Of every link that faults of the spec concern, from the start of virtual time to `until`.
  std::vector<fabric::LinkHealth> link_health(Instant until) const;
  bool at_rest() const override;
  // What another region has sent. Its instant must not lie before engine.now().
  void receive(const fabric::Crossing& crossing);
  // Packets and transfers taken less given back by this region, modulo 2^32; the sum over all regions counts them.
  std::uint32_t balance() const;
  // At rest: becomes as newly built, so that what follows does not depend on what has been. Faults that the spec
  // tells of begin to count now, at `start`; before, only links that are absent for good make a difference.
  void restart(Instant start);
  // Nothing goes wrong from now on.
  void end_faults();
  // Two of these NICs that what is absent for good has cut off from each other, or of which one has no cable.
  std::optional<std::pair<NicId, NicId>> cut_off(const std::vector<NicId>& nics) const;

  // One of these NICs whose link a drain in the spec takes out, and the field that says so.
  std::optional<std::pair<NicId, std::string>> drained(const std::vector<NicId>& nics) const;

  // From now on the observer is told of every frame on every link; none to stop.
  void observe(FabricObserver* observer) { observer_ = observer; }

  // Bytes of credit that are not back at their senders at engine.now(), over all links. Looks at every link: for
  // tests and reports. 0 whenever at_rest().
  std::uint64_t credit_bytes_outstanding() const;

 private:
  void handle(Event event) override;
  void fetch(Event event, unsigned stage) const override;
  [[gnu::noinline]] void handle_observed(Event event);

  struct Parts;

  Engine& engine_;
  const Dragonfly& dragonfly_;
  const Spec spec_;
  TransferSink* sink_ = nullptr;
  FabricObserver* observer_ = nullptr;
  std::unique_ptr<Parts> parts_;
};

}  // namespace dryfly
