#include "core/network/fabric/wiring.hpp"

#include <string>

#include "core/network/fabric/place_names.hpp"
#include "core/spec/fields.hpp"

namespace dryfly::fabric {
namespace {

constexpr std::uint64_t longest_flight_ps = 4'000'000'000;  // in 32 bits

}  // namespace

Wiring::Wiring(const Dragonfly& dragonfly, const FabricSpec& fabric, const Spec& spec)
    : first_nic_port_(dragonfly.port_count()), ends_(std::size_t{dragonfly.port_count()} + dragonfly.nic_count()) {
  connect(dragonfly, fabric);
  add_extra_flights(dragonfly, spec);
}

void Wiring::connect(const Dragonfly& dragonfly, const FabricSpec& fabric) {
  for (std::uint32_t at = 0; at < dragonfly.switch_count(); ++at) {
    const std::uint32_t first = dragonfly.first_port({at});
    for (std::uint32_t index = 0; index < dragonfly.ports_of({at}); ++index) {
      const Peer& peer = dragonfly.peer({at}, index);
      End& end = ends_[first + index];
      if (peer.kind == Peer::Kind::nic) {
        end = {nic_port({peer.id}), static_cast<std::uint32_t>(fabric.edge_flight.ps)};
        ends_[end.peer] = {first + index, end.flight_ps};
      } else {
        const bool local = peer.kind == Peer::Kind::local_switch;
        end.peer = dragonfly.first_port({peer.id}) + peer.port;
        end.flight_ps = static_cast<std::uint32_t>((local ? fabric.local_flight : fabric.global_flight).ps);
      }
    }
  }
}

void Wiring::add_extra_flights(const Dragonfly& dragonfly, const Spec& spec) {
  const std::uint64_t count = spec.number(fields::fabric_extra_flight_count);
  for (std::uint64_t n = 0; n < count; ++n) {
    const std::uint64_t extra_ps = spec.number(fields::fabric_extra_flight_ps, {n});
    const std::string& from = spec.text(fields::fabric_extra_flight_from, {n});
    const std::string& to = spec.text(fields::fabric_extra_flight_to, {n});
    const PlaceName source = PlaceName::parse(dragonfly, fields::fabric_extra_flight_from.at({n}), from);
    const PlaceName target = PlaceName::parse(dragonfly, fields::fabric_extra_flight_to.at({n}), to);
    bool found = false;
    const std::uint32_t first = source.is_nic ? nic_port({source.id}) : dragonfly.first_port({source.id});
    const std::uint32_t ports = source.is_nic ? 1 : dragonfly.ports_of({source.id});
    const std::uint32_t there = target.is_nic ? nic_port({target.id}) : dragonfly.first_port({target.id});
    const std::uint32_t ports_there = target.is_nic ? 1 : dragonfly.ports_of({target.id});
    for (std::uint32_t id = first; id < first + ports; ++id) {
      if (ends_[id].peer < there || ends_[id].peer >= there + ports_there) continue;
      if (ends_[id].flight_ps + extra_ps > longest_flight_ps) {
        throw SpecError(fields::fabric_extra_flight_ps.at({n}) + " = " + std::to_string(extra_ps) +
                        ": accepted are flights of up to " + std::to_string(longest_flight_ps) + " in all");
      }
      ends_[id].flight_ps += static_cast<std::uint32_t>(extra_ps);
      found = true;
    }
    if (!found) {
      throw SpecError(fields::fabric_extra_flight_to.at({n}) + " = `" + to + "`: no link leads there from " + from);
    }
  }
}

}  // namespace dryfly::fabric
