// What the time of a job's ranks has gone to, by phases with names of the skeleton's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/unit/unit.hpp"

namespace dryfly::motif {

class Phases {
 public:
  // The number of that phase, for Rank::enter(); new ones may be named at any time.
  std::uint16_t named(const std::string& name) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found != names_.end()) return static_cast<std::uint16_t>(found - names_.begin());
    names_.push_back(name);
    spent_ps_.push_back(0);
    return static_cast<std::uint16_t>(names_.size() - 1);
  }
  void spend(std::uint16_t phase, std::uint64_t ps) { spent_ps_[phase] += ps; }
  // Of each, what `ranks` of them have spent in it on average.
  std::vector<std::pair<std::string, Duration>> means(std::uint32_t ranks) const {
    std::vector<std::pair<std::string, Duration>> means;
    for (std::size_t phase = 1; phase < names_.size(); ++phase) {
      means.emplace_back(names_[phase], Duration{static_cast<std::uint64_t>(spent_ps_[phase] / ranks)});
    }
    return means;
  }

 private:
  std::vector<std::string> names_{""};  // number 0 is none
  __extension__ using Wide = unsigned __int128;
  std::vector<Wide> spent_ps_{0};  // of all ranks: of a long job that is more than 64 bits hold
};

}  // namespace dryfly::motif
