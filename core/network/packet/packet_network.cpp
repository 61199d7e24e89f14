#include "core/network/packet/packet_network.hpp"

#include <optional>

#include "core/contract/observer.hpp"
#include "core/network/fabric/fabric_spec.hpp"
#include "core/network/fabric/link_faults.hpp"
#include "core/network/fabric/manager.hpp"
#include "core/network/fabric/reach.hpp"
#include "core/network/fabric/wiring.hpp"
#include "core/network/packet/links.hpp"
#include "core/network/packet/nic_ports.hpp"
#include "core/network/packet/region.hpp"
#include "core/network/packet/switches.hpp"
#include "core/network/packet/transfers.hpp"

namespace dryfly {

using fabric::EventKind;

struct PacketNetwork::Parts {
  Parts(Engine& engine, const Dragonfly& dragonfly, const Spec& text, std::optional<Instant> start)
      : Parts(engine, dragonfly, text, fabric::FabricSpec::read(text), fabric::Region{}) {
    if (!fabric::FaultPlan::any_in(text)) return;
    const fabric::Wiring wiring(dragonfly, fabric::FabricSpec::read(text), text);
    plan = fabric::plan_from(text, dragonfly, wiring, start.has_value());
    faults.emplace(plan, wiring, start.value_or(Instant{}));
    links.hand_to(*faults);
    manager.emplace(dragonfly, *faults, [&engine] { return engine.now(); });
    switches.managed_by(*manager);
    nics.retry_by(plan.retry);
  }
  Parts(Engine& engine, const Dragonfly& dragonfly, const Spec& text, const fabric::FabricSpec& spec,
        const fabric::Region& region)
      : links(engine, dragonfly, spec, text, region),
        packets(region.shared->packets),
        transfers(region.shared->transfers),
        switches(dragonfly, spec, fabric::make_routing(text, dragonfly), links, packets, transfers),
        nics(first_nic(dragonfly, region), nic_count(dragonfly, region), spec, links, packets, transfers) {}

  static NicId first_nic(const Dragonfly& dragonfly, const fabric::Region& region) {
    return region.is_part ? dragonfly.first_nic(region.group) : NicId{0};
  }
  static std::uint32_t nic_count(const Dragonfly& dragonfly, const fabric::Region& region) {
    return region.is_part ? dragonfly.nics_in(region.group) : dragonfly.nic_count();
  }

  void handle(Event event) {
    const std::uint32_t port = fabric::port_of(event);
    const std::uint32_t packet = fabric::packet_of(event);
    switch (fabric::kind_of(event)) {
      case EventKind::head_at_switch:
        return switches.head(port, packet);
      case EventKind::packet_at_nic:
        return nics.deliver(port, packet);
      case EventKind::acknowledgement_at_nic:
        return nics.acknowledge(port, packet);
      case EventKind::output_wakes:
        return links.is_nic_port(port) ? nics.wake(port) : switches.wake(port);
      case EventKind::hold_over:
        return nics.end_hold(port, packet >> 24, {packet & 0xffffff});
      case EventKind::looped_head:
        return switches.looped(port, packet);
      case EventKind::connection_due:
        return nics.connections().due(port);
      case EventKind::retry_due:
        break;
    }
    DRYFLY_CHECK(false && "an event of no kind");
  }

  // The frame whose arrival the event is; it tells all about the link it came by.
  void show(Event event, NetworkObserver& observer) const {
    const bool head = fabric::kind_of(event) == EventKind::head_at_switch;
    if (!head && fabric::kind_of(event) != EventKind::packet_at_nic &&
        fabric::kind_of(event) != EventKind::acknowledgement_at_nic) {
      return;
    }
    const fabric::Packet& packet = packets[fabric::packet_of(event)];
    if (packet.looped) return;
    const std::uint32_t driver = links[fabric::port_of(event)].peer;
    CarriedPiece piece;
    piece.port = driver;
    piece.piece = fabric::packet_of(event);
    piece.acknowledgement = packet.kind != fabric::PacketKind::data;
    piece.bytes = packet.frame_bytes;
    piece.now_ps = event.at_ps;
    const std::uint64_t length_ps = piece.acknowledgement ? switches.acknowledgement_ps() : packet.transmission_ps;
    const std::uint64_t way_ps = links[driver].flight_ps + (head ? links.latency_ps(packet) : length_ps);
    piece.to_nic = !head;
    piece.start_ps = event.at_ps - way_ps;
    piece.end_ps = piece.start_ps + length_ps;
    observer.carried(piece);
  }

  [[gnu::cold, gnu::noinline]] void handle_trouble(Event event) {
    const std::uint32_t port = fabric::port_of(event);
    const std::uint32_t index = fabric::packet_of(event);
    const EventKind kind = fabric::kind_of(event);
    if (kind == EventKind::retry_due) return nics.retry()->due(index);
    const fabric::Packet& packet = packets[index];
    const bool is_data = packet.kind == fabric::PacketKind::data;
    if (!links.lost(kind, port, packet, is_data ? packet.transmission_ps : nics.ack_ps())) return handle(event);
    if (is_data && !links.is_nic_port(port)) links.return_lost_credit(port, packet);
    if (packet.kind == fabric::PacketKind::notice) return packets.give_back(index);
    nics.retry()->lost(index);
  }

  fabric::Links links;
  fabric::SharedPool<fabric::Packet> packets;
  fabric::Transfers transfers;
  fabric::Switches switches;
  fabric::NicPorts nics;
  fabric::FaultPlan plan;
  std::optional<fabric::LinkFaults> faults;
  std::optional<fabric::Manager> manager;
};

PacketNetwork::PacketNetwork(Engine& engine, const Dragonfly& dragonfly, const Spec& spec)
    : engine_(engine),
      dragonfly_(dragonfly),
      spec_(spec),
      parts_(std::make_unique<Parts>(engine, dragonfly, spec, std::nullopt)) {
  engine.attach(ComponentClass::fabric, *this, 3);
}

// Every class is opened at once: later, regions would do it at the same time. The one that nearly all traffic is of
// comes first, see Links::count.
PacketNetwork::PacketNetwork(Engine& engine, const Dragonfly& dragonfly, const Spec& spec, const fabric::Region& region)
    : engine_(engine),
      dragonfly_(dragonfly),
      spec_(spec),
      parts_(std::make_unique<Parts>(engine, dragonfly, spec, fabric::FabricSpec::read(spec), region)) {
  engine.attach(ComponentClass::fabric, *this, 3);
  const fabric::QosProfile& profile = parts_->nics.profile();
  parts_->nics.open_class(profile.of(TrafficClass::best_effort));
  for (std::uint32_t index = 0; index < profile.classes.size(); ++index) parts_->nics.open_class(index);
}

PacketNetwork::~PacketNetwork() = default;

void PacketNetwork::receive(const fabric::Crossing& crossing) {
  if (crossing.credit_bytes != 0) return parts_->switches.credit_from_far(crossing);
  parts_->links.schedule_from_far(crossing);
}

std::uint32_t PacketNetwork::balance() const { return parts_->packets.in_use() + parts_->transfers.in_use(); }

void PacketNetwork::connect(TransferSink& sink) {
  DRYFLY_CHECK(sink_ == nullptr);
  sink_ = &sink;
  parts_->nics.connect(sink_, bus_);
}

void PacketNetwork::attach(HostBus& bus) {
  DRYFLY_CHECK(bus_ == nullptr);
  bus_ = &bus;
  parts_->nics.connect(sink_, bus_);
}

bool PacketNetwork::takes_ordered() const { return !parts_->links.in_regions(); }

void PacketNetwork::observe(NetworkObserver* observer) {
  DRYFLY_CHECK(!parts_->links.in_regions());
  observer_ = observer;
}

void PacketNetwork::restart(Instant start) {
  DRYFLY_CHECK(at_rest() && !parts_->links.in_regions() && start >= engine_.now());
  parts_ = std::make_unique<Parts>(engine_, dragonfly_, spec_, start);
  parts_->nics.connect(sink_, bus_);
}

std::optional<std::pair<NicId, NicId>> PacketNetwork::cut_off(const std::vector<NicId>& nics) const {
  if (!parts_->manager) return std::nullopt;
  return fabric::cut_off(nics, dragonfly_, *parts_->faults, *parts_->manager);
}

std::optional<std::pair<NicId, std::string>> PacketNetwork::drained(const std::vector<NicId>& nics) const {
  if (!fabric::FaultPlan::any_in(spec_)) return std::nullopt;
  return fabric::drained(nics, dragonfly_, {dragonfly_, fabric::FabricSpec::read(spec_), spec_}, spec_);
}

void PacketNetwork::handle(Event event) {
  if (observer_ != nullptr) [[unlikely]] {
    return handle_observed(event);
  }
  if (fabric::of_trouble(event)) [[unlikely]] {
    return parts_->handle_trouble(event);
  }
  parts_->handle(event);
}

// Apart from handle(), which would otherwise save registers for it with every event.
void PacketNetwork::handle_observed(Event event) {
  parts_->show(event, *observer_);
  if (fabric::of_trouble(event)) return parts_->handle_trouble(event);
  parts_->handle(event);
}

// The packet and the port where it is, then what these lead to, then what that leads to.
void PacketNetwork::prefetch(Event event, unsigned stage) const {
  const EventKind kind = fabric::kind_of(event);
  const std::uint32_t port = fabric::port_of(event);
  const std::uint32_t packet = fabric::packet_of(event);
  if (kind == EventKind::hold_over || kind == EventKind::retry_due || kind == EventKind::connection_due) return;
  if (stage == 0) {
    parts_->links.prefetch(port);
    if (kind != EventKind::output_wakes) parts_->packets.prefetch(packet);
  } else if (kind == EventKind::looped_head) {
    return;
  } else if (kind == EventKind::head_at_switch) {
    parts_->switches.prefetch_for_head(port, packet, stage);
  } else if (kind != EventKind::output_wakes) {
    parts_->nics.prefetch_for_arrival(port, packet, stage);
  } else if (parts_->links.is_nic_port(port)) {
    parts_->nics.prefetch_for_wake(port, stage);
  } else {
    parts_->switches.prefetch_for_wake(port, stage);
  }
}

void PacketNetwork::submit(const Transfer& transfer) { parts_->nics.submit(transfer); }

void PacketNetwork::end_faults() {
  if (parts_->faults) parts_->faults->end();
}

NetworkTotals PacketNetwork::totals() const {
  NetworkTotals totals = parts_->nics.totals();
  if (parts_->faults) totals.faults.link_replays = parts_->faults->replays();
  return totals;
}

std::map<NicId, NicAccount> PacketNetwork::nic_accounts(Instant until) const { return parts_->nics.accounts(until); }

std::map<NicId, NicTrackers> PacketNetwork::trackers_by_nic() const { return parts_->nics.connections().by_nic(); }

std::vector<LinkHealth> PacketNetwork::link_health(Instant until) const {
  return parts_->faults ? parts_->faults->health(until.ps) : std::vector<LinkHealth>{};
}

bool PacketNetwork::at_rest() const {
  DRYFLY_CHECK(!parts_->links.in_regions());
  return parts_->transfers.in_use() == 0 && parts_->packets.in_use() == 0;
}

std::uint64_t PacketNetwork::credit_bytes_outstanding() const { return parts_->links.credits_outstanding(); }

}  // namespace dryfly
