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
  // The rank's time from now on counts for that phase.
  void enter(std::uint32_t rank, std::uint16_t phase, Instant now) {
    if (rank >= entered_.size()) entered_.resize(rank + std::size_t{1});
    Entered& entered = entered_[rank];
    if (now > entered.at) spent_ps_[entered.phase] += (now - entered.at).ps;
    entered = {now, phase};
  }
  void end(std::uint32_t rank, Instant now) {
    if (rank < entered_.size()) enter(rank, 0, now);
  }
  // Of each, what `ranks` of them have spent in it on average.
  std::vector<std::pair<std::string, Duration>> means(std::uint32_t ranks) const {
    std::vector<std::pair<std::string, Duration>> means;
    for (std::size_t phase = 1; phase < names_.size(); ++phase) {
      means.emplace_back(names_[phase], Duration{static_cast<std::uint64_t>(spent_ps_[phase] / ranks)});
    }
    return means;
  }

 private:
  struct Entered {
    Instant at{};
    std::uint16_t phase = 0;
  };

  std::vector<std::string> names_{""};  // number 0 is none
  __extension__ using Wide = unsigned __int128;
  std::vector<Wide> spent_ps_{0};  // of all ranks: of a long job that is more than 64 bits hold
  std::vector<Entered> entered_;   // of each rank, once one has entered a phase
};

}  // namespace dryfly::motif
