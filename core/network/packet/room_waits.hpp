// How long NICs had something to send for which the switch before them had no room: by class, with a packet to send and
// a place in the window.
//
// Stands for what the hardware counts as a paused transmit path (docs/model/counters.md#pauses): where Slingshot's edge
// link stops a class by a pause, links here take credit. Costs nothing while there is room.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "core/contract/network.hpp"
#include "core/network/fabric/qos.hpp"

namespace dryfly::fabric {

class RoomWaits {
 public:
  // The state of these classes (bits) of this NIC, counted from the first one, has turned: to waiting or back.
  void turned(std::uint32_t nic, std::uint32_t classes, std::uint64_t now_ps);
  void add_to(std::map<NicId, NicAccount>& accounts, NicId first, const QosProfile& profile, Instant until) const;

 private:
  struct Wait {
    std::uint64_t since_ps = never.ps;
    std::uint64_t sum_ps = 0;
  };
  std::vector<std::array<Wait, most_classes>> waits_;  // by NIC, as far as any has waited
};

}  // namespace dryfly::fabric
