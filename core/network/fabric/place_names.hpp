// The words in which a spec names places of the network: `s12` a switch, `n5` a NIC, `s0>s4` every link that leads
// from one to the other, `s0-s4` these cables in both directions, `s0-s4.1` the second of them, `n5` the cable of a
// NIC, `s12` all cables of a switch; `all`, `edge`, `local` and `global` every cable of that kind.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/topology/dragonfly.hpp"

namespace dryfly::fabric {

class Wiring;

struct PlaceName {
  bool is_nic = false;
  std::uint32_t id = 0;

  // Throws SpecError under the name of the field.
  static PlaceName parse(const Dragonfly& dragonfly, const std::string& field, const std::string& text);
};

// The ports that drive the links named, ascending. Throws SpecError where there are none.
std::vector<std::uint32_t> ports_named(const Dragonfly& dragonfly, const Wiring& wiring, const std::string& field,
                                       const std::string& text);

}  // namespace dryfly::fabric
