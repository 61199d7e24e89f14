#include "conductor/meetings.hpp"

#include <utility>

namespace dryfly {

std::vector<RankId> Meetings::come(const Rank& rank) {
  std::vector<RankId>& there = there_[rank.page->meeting];
  there.push_back(rank.id);
  if (there.size() < rank.page->meeting_size) return {};
  std::vector<RankId> all = std::move(there);
  there_.erase(rank.page->meeting);
  return all;
}

}  // namespace dryfly
