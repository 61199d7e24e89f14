// Ranks that meet outside the network, as clients of a process manager do in a collective call of PMIx: each waits
// until the last of them has come, and all go on at one instant, the last one's plus what a command to a NIC and the
// sight of its completion take. The time of the process manager's own network and daemons is not modelled.
#include <algorithm>

#include "conductor/conductor.hpp"

namespace dryfly {

void Conductor::gate_meet(Rank& rank) {
  if (ended_ || served()) return release(rank, rank.gate.at_ps);
  if (started_) set_state(rank, RankState::meeting, never.ps);
  if (takes_turns(rank)) batons_.give_back(rank, rank.gate.at_ps, rank.page->gate_has_acted != 0);
  std::vector<RankId>& there = meetings_[rank.page->meeting];
  there.push_back(rank.id);
  if (there.size() < rank.page->meeting_size) return;

  std::uint64_t last_ps = 0;
  for (const RankId id : there) last_ps = std::max(last_ps, ranks_[id.value].gate.at_ps);
  const std::uint64_t instant = last_ps + command_latency_.ps + completion_latency_.ps;
  const std::vector<RankId> all = std::move(there);
  meetings_.erase(rank.page->meeting);
  for (const RankId id : all) {
    Rank& member = ranks_[id.value];
    member.gate.at_ps = started_ ? instant : member.gate.at_ps;
    if (!started_) {
      release(member, member.gate.at_ps);
    } else if (takes_turns(member)) {
      set_state(member, RankState::queued, instant);
      batons_.give_back(member, instant, false);
    } else {
      gate_wait(member, RankState::polling, instant);
    }
  }
}

}  // namespace dryfly
