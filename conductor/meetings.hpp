// Ranks that meet outside the network, as clients of a process manager do in a collective call of PMIx: each waits
// until the last of them has come.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "conductor/rank.hpp"

namespace dryfly {

class Meetings {
 public:
  // The rank is at the meeting that its page names. Everybody who is there, if it is the last to come; otherwise
  // nobody.
  std::vector<RankId> come(const Rank& rank);

 private:
  std::map<std::uint64_t, std::vector<RankId>> there_;
};

}  // namespace dryfly
