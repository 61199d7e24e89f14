#include "conductor/meetings.hpp"

#include <utility>

namespace dryfly {

std::vector<RankId> Meetings::come(const Rank& rank) {
  std::vector<RankId>& there = there_[rank.page->gate.meeting];
  there.push_back(rank.id);
  if (there.size() < rank.page->gate.meeting_size) return {};
  std::vector<RankId> all = std::move(there);
  there_.erase(rank.page->gate.meeting);
  return all;
}

}  // namespace dryfly
