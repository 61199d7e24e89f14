// How the conductor passes batons: see batons.hpp.
#include <algorithm>
#include <cstring>

#include "conductor/conductor.hpp"

namespace dryfly {

// From the start to the end of virtual time, unless the rank is in a call that takes none.
bool Conductor::takes_turns(const Rank& rank) const {
  return segment_.header().nodes_share_memory != 0 && started_ && !ended_ && !rank.gate.outside;
}

// When the oldest event is visible that the rank has not taken.
std::uint64_t Conductor::next_event_ps(const Rank& rank) const {
  std::uint64_t at = rank.page->event_tail.load(std::memory_order_acquire);
  if (at != rank.events.head) {
    const std::uint32_t ring = segment_.header().event_ring_bytes;
    const auto* event = reinterpret_cast<const wire::Event*>(rank.events.ring + at % ring);
    if (event->record_bytes == wire::wrap_record) event = reinterpret_cast<const wire::Event*>(rank.events.ring);
    return event->at_ps;
  }
  return rank.events.overflow.empty() ? never.ps : rank.events.overflow.front().event.at_ps;
}

void Conductor::gate_wait_in_turn(Rank& rank, RankState state) {
  const std::uint64_t event = next_event_ps(rank);
  const std::uint64_t until = std::min(rank.gate.deadline_ps, event);
  set_state(rank, state, until == never.ps ? until : std::max(until, rank.gate.at_ps));
  batons_.give_back(rank, rank.gate.at_ps, rank.page->gate_has_acted != 0);
}

bool Conductor::pass_batons() {
  bool any = false;
  if (batons_.open_nodes().empty()) return any;
  const std::set<std::uint32_t> nodes = batons_.open_nodes();
  for (const std::uint32_t node : nodes) {
    Rank* rank = batons_.next(node, visible_until());
    if (rank == nullptr) continue;
    const std::uint64_t instant = bounds_.bound(rank->id);
    if (waits_for_copy(*rank, instant)) continue;
    batons_.take(*rank);
    release(*rank, instant);
    any = true;
  }
  return any;
}

}  // namespace dryfly
