// The cables between groups and those of the NICs, and the ports that they are plugged into: dealt by rule
// (dealt_cables.cpp), or listed one by one (listed_cables.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "core/topology/groups.hpp"
#include "core/unit/large_pages.hpp"
#include "core/unit/unit.hpp"

namespace dryfly {

inline constexpr std::uint32_t most_switch_ports = 64;  // of a Rosetta switch, and of the fabric's bit masks

// One end of a global link, with what lies at the other end.
struct GlobalEnd {
  SwitchId near;
  SwitchId far;
  std::uint8_t near_port = 0;
  std::uint8_t far_port = 0;
};

struct NicPlace {
  SwitchId at;
  std::uint8_t port = 0;
};

struct Cables {
  explicit Cables(const Groups& groups);

  std::vector<std::uint32_t> global_ports;  // of each switch
  std::vector<std::uint32_t> nic_ports;     // of each switch
  LargeVector<NicPlace> nic_places;         // of each NIC
  LargeVector<std::size_t> first_end;       // of each pair of groups, and the end
  LargeVector<GlobalEnd> ends;
};

// Both throw SpecError where the wiring does not fit or leaves nodes unreachable.
Cables dealt_cables(const Spec& spec, const Groups& groups);
Cables listed_cables(const Spec& spec, const Groups& groups);

}  // namespace dryfly
