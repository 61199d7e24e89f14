#include "core/network/packet/room_waits.hpp"

#include <bit>

namespace dryfly::fabric {
namespace {

// The class that stands for those that travel as the same one of the profile.
TrafficClass spokesman(const QosProfile& profile, std::uint32_t index) {
  for (const TrafficClass each : {TrafficClass::best_effort, TrafficClass::low_latency, TrafficClass::bulk_data,
                                  TrafficClass::dedicated, TrafficClass::ethernet}) {
    if (profile.of(each) == index) return each;
  }
  return TrafficClass::scavenger;
}

}  // namespace

void RoomWaits::turned(std::uint32_t nic, std::uint32_t classes, std::uint64_t now_ps) {
  if (nic >= waits_.size()) waits_.resize(nic + std::size_t{1});
  for (; classes != 0; classes &= classes - 1) {
    Wait& wait = waits_[nic][static_cast<std::size_t>(std::countr_zero(classes))];
    if (wait.since_ps == never.ps) {
      wait.since_ps = now_ps;
    } else {
      wait.sum_ps += now_ps - wait.since_ps;
      wait.since_ps = never.ps;
    }
  }
}

void RoomWaits::add_to(std::map<NicId, NicAccount>& accounts, NicId first, const QosProfile& profile,
                       Instant until) const {
  for (std::uint32_t nic = 0; nic < waits_.size(); ++nic) {
    for (std::uint32_t index = 0; index < profile.classes.size(); ++index) {
      const Wait& wait = waits_[nic][index];
      const std::uint64_t open_ps = wait.since_ps < until.ps ? until.ps - wait.since_ps : 0;
      if (wait.sum_ps + open_ps == 0) continue;
      NicAccount& account = accounts[NicId{first.value + nic}];
      account.without_room_ps[static_cast<std::size_t>(spokesman(profile, index))] += wait.sum_ps + open_ps;
    }
  }
}

}  // namespace dryfly::fabric
