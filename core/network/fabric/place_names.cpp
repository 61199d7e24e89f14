#include "core/network/fabric/place_names.hpp"

#include <algorithm>
#include <charconv>

#include "core/network/fabric/wiring.hpp"

namespace dryfly::fabric {
namespace {

using Ports = std::vector<std::uint32_t>;

// A switch's ports, or the one of a NIC.
Ports ports_at(const Dragonfly& dragonfly, const Wiring& wiring, const PlaceName& place) {
  if (place.is_nic) return {wiring.nic_port({place.id})};
  Ports ports(dragonfly.ports_of({place.id}));
  for (std::uint32_t index = 0; index < ports.size(); ++index) ports[index] = dragonfly.first_port({place.id}) + index;
  return ports;
}

Ports ports_from_to(const Dragonfly& dragonfly, const Wiring& wiring, const PlaceName& from, const PlaceName& to) {
  Ports ports;
  const Ports there = ports_at(dragonfly, wiring, to);
  for (const std::uint32_t port : ports_at(dragonfly, wiring, from)) {
    const std::uint32_t peer = wiring.peer(port);
    if (std::find(there.begin(), there.end(), peer) != there.end()) ports.push_back(port);
  }
  return ports;
}

Ports ports_of_kind(const Dragonfly& dragonfly, const std::string& kind) {
  Ports ports;
  for (std::uint32_t at = 0; at < dragonfly.switch_count(); ++at) {
    for (std::uint32_t index = 0; index < dragonfly.ports_of({at}); ++index) {
      const Peer::Kind peer = dragonfly.peer({at}, index).kind;
      const bool named = kind == "all" || (kind == "edge" && peer == Peer::Kind::nic) ||
                         (kind == "local" && peer == Peer::Kind::local_switch) ||
                         (kind == "global" && peer == Peer::Kind::global_switch);
      if (named && peer != Peer::Kind::nothing) ports.push_back(dragonfly.first_port({at}) + index);
    }
  }
  return ports;
}

void add_other_directions(const Wiring& wiring, Ports& ports) {
  for (std::size_t index = 0, count = ports.size(); index < count; ++index) {
    if (wiring.peer(ports[index]) != none) ports.push_back(wiring.peer(ports[index]));
  }
}

// `.1` behind a link's name; none: all of the parallel links.
std::uint32_t take_parallel(const std::string& field, std::string& text) {
  const auto dot = text.find('.');
  if (dot == std::string::npos) return none;
  std::uint32_t parallel = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + dot + 1, end, parallel);
  if (error != std::errc{} || stop != end) {
    throw SpecError(field + " = `" + text + "`: behind the dot stands which of the parallel links, from 0");
  }
  text.erase(dot);
  return parallel;
}

Ports ports_of_link(const Dragonfly& dragonfly, const Wiring& wiring, const std::string& field, std::string text,
                    std::size_t sign) {
  const bool both = text[sign] == '-';
  const std::string whole = text;
  const std::uint32_t parallel = take_parallel(field, text);
  const PlaceName from = PlaceName::parse(dragonfly, field, text.substr(0, sign));
  const PlaceName to = PlaceName::parse(dragonfly, field, text.substr(sign + 1));
  Ports ports = ports_from_to(dragonfly, wiring, from, to);
  if (ports.empty()) throw SpecError(field + " = `" + whole + "`: no link leads from one to the other");
  if (parallel != none) {
    if (parallel >= ports.size()) {
      throw SpecError(field + " = `" + whole + "`: the parallel links are numbered 0 to " +
                      std::to_string(ports.size() - 1));
    }
    ports = {ports[parallel]};
  }
  if (both) add_other_directions(wiring, ports);
  return ports;
}

}  // namespace

PlaceName PlaceName::parse(const Dragonfly& dragonfly, const std::string& field, const std::string& text) {
  PlaceName place;
  place.is_nic = text.starts_with('n');
  const char* end = text.data() + text.size();
  const bool letter = place.is_nic || text.starts_with('s');
  const auto [stop, error] = std::from_chars(text.data() + (letter ? 1 : 0), end, place.id);
  const std::uint32_t count = place.is_nic ? dragonfly.nic_count() : dragonfly.switch_count();
  if (!letter || error != std::errc{} || stop != end || place.id >= count) {
    throw SpecError(field + " = `" + text + "`: accepted are s0 to s" + std::to_string(dragonfly.switch_count() - 1) +
                    " and n0 to n" + std::to_string(dragonfly.nic_count() - 1));
  }
  return place;
}

std::vector<std::uint32_t> ports_named(const Dragonfly& dragonfly, const Wiring& wiring, const std::string& field,
                                       const std::string& text) {
  Ports ports;
  const auto sign = text.find_first_of("->");
  if (text == "all" || text == "edge" || text == "local" || text == "global") {
    ports = ports_of_kind(dragonfly, text);
    add_other_directions(wiring, ports);
  } else if (sign != std::string::npos) {
    ports = ports_of_link(dragonfly, wiring, field, text, sign);
  } else {
    ports = ports_at(dragonfly, wiring, PlaceName::parse(dragonfly, field, text));
    add_other_directions(wiring, ports);
  }
  std::sort(ports.begin(), ports.end());
  ports.erase(std::unique(ports.begin(), ports.end()), ports.end());
  return ports;
}

}  // namespace dryfly::fabric
