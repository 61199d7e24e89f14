// The counters of all NICs that have had an end-point.
#pragma once

#include <cstdint>
#include <vector>

#include "core/nic/counters.hpp"
#include "core/unit/check.hpp"

namespace dryfly::nic {

class CounterBank {
 public:
  // Where those of this NIC are, from now on.
  std::uint32_t open(NicId nic) {
    if (nic.value >= place_of_.size()) place_of_.resize(nic.value + std::size_t{1}, nowhere);
    std::uint32_t& place = place_of_[nic.value];
    if (place == nowhere) {
      place = static_cast<std::uint32_t>(counters_.size());
      counters_.push_back({.nic = nic});
    }
    return place;
  }
  NicCounters& at(std::uint32_t place) { return counters_[place]; }
  NicCounters& of(NicId nic) {
    DRYFLY_CHECK(nic.value < place_of_.size() && place_of_[nic.value] != nowhere);
    return counters_[place_of_[nic.value]];
  }
  // In the order of their ids.
  std::vector<NicCounters> sorted() const {
    std::vector<NicCounters> sorted;
    for (const std::uint32_t place : place_of_) {
      if (place != nowhere) sorted.push_back(counters_[place]);
    }
    return sorted;
  }
  void restart() {
    for (NicCounters& counters : counters_) counters.values = {};
  }

 private:
  static constexpr std::uint32_t nowhere = UINT32_MAX;

  std::vector<NicCounters> counters_;
  std::vector<std::uint32_t> place_of_;  // by NIC
};

}  // namespace dryfly::nic
