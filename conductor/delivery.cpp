// Events on their way to a rank: in order, into its ring as far as they may be shown. A completion whose payload
// another rank has yet to copy is held back until it has.
#include <utility>

#include "conductor/conductor.hpp"

namespace dryfly {

void Conductor::emit(RankId id, PendingEvent&& pending) {
  Rank& rank = ranks_[id.value];
  if (rank.state == RankState::gone || pending.tenancy != rank.process.tenancy) return drop(pending);
  const std::uint64_t at = pending.event.at_ps;
  DRYFLY_CHECK(at >= rank.events.last_ps);
  rank.events.last_ps = at;
  // Nearly every event can be shown at once.
  const bool at_once = rank.events.overflow.empty() && pending.copy_number == 0 && write_event(segment_, rank, pending);
  if (at_once) {
    shown(rank);
  } else {
    rank.events.overflow.push_back(std::move(pending));
    if (rank.events.overflow.size() == 1) flush(rank);
  }

  const bool waits = rank.state == RankState::waiting || rank.state == RankState::ending ||
                     (rank.state == RankState::timed && at <= rank.gate.deadline_ps);
  if (!waits) return;
  const std::uint64_t bound = std::max(at, rank.gate.at_ps);
  if (bound >= bounds_.bound(id)) return;
  bounds_.set(id, bound);
  if (bound + lookahead_ps() < limit_.ps) {
    limit_ = Instant{bound + lookahead_ps()};
    engine_.lower_limit(limit_);
  }
  ready_.push_back(id);
  if (takes_turns(rank)) batons_.waits(rank);
}

void Conductor::unreachable(RankId rank, RankId other) {
  status_.say("unreachable " + std::to_string(rank.value) + " " + std::to_string(other.value));
}

// A rank that waits may wait for just this, so it gets to look: others look before they wait. One that has an event
// coming looks then.
void Conductor::memory_changed(RankId changed) {
  if (!memory_watched_ || !started_ || ended_) return;
  for (const std::uint32_t index : batons_.ranks_of(ranks_[changed.value].node)) {
    Rank& rank = ranks_[index];
    const bool waits = rank.state == RankState::waiting || rank.state == RankState::timed;
    const bool watches = rank.page->watches_memory.load(std::memory_order_relaxed) != 0;
    const bool has_event =
        !rank.events.overflow.empty() || rank.events.head != rank.page->event_tail.load(std::memory_order_acquire);
    if (!waits || !watches || has_event) continue;
    PendingEvent pending;
    pending.event = {};
    pending.event.kind = wire::EventKind::memory_changed;
    pending.event.at_ps = (engine_.now() + completion_latency_).ps;
    emit(rank.id, std::move(pending));
  }
}

bool Conductor::copy_is_missing(const PendingEvent& pending) const {
  if (pending.copy_number == 0) return false;
  const Rank& copier = ranks_[pending.copier.value];
  return copier.page->copies_done.load(std::memory_order_seq_cst) < pending.copy_number &&
         copier.state != RankState::gone;
}

// An event that is due at that instant is held back until another rank has copied a payload: the rank waits for the
// copy, not for time. It cannot wait for itself: the message that the copy belongs to was due at its target before this
// event. One that only finds the ring full does not count: the rank has to take first what is there.
bool Conductor::waits_for_copy(Rank& rank, std::uint64_t instant) {
  if (rank.events.overflow.empty() || rank.events.overflow.front().event.at_ps > instant) return false;
  // Asked before the attempt: a copy that comes in between makes it succeed, and must not pass for a full ring.
  const bool missing = copy_is_missing(rank.events.overflow.front());
  return !flush(rank) && missing;
}

// Moves pending events into the ring as far as they may be shown; true if at least one went.
bool Conductor::flush(Rank& rank) {
  bool moved = false;
  while (!rank.events.overflow.empty()) {
    const PendingEvent& front = rank.events.overflow.front();
    if (front.copy_number != 0) {
      Rank& copier = ranks_[front.copier.value];
      copier.page->notify_copies.store(front.copy_number, std::memory_order_seq_cst);
      if (copy_is_missing(front)) {
        copier.events.copy_waiters.push_back(rank.id);
        nudge(*copier.page);
        break;
      }
    }
    if (!write_event(segment_, rank, front)) break;
    rank.events.overflow.pop_front();
    moved = true;
  }
  if (moved) shown(rank);
  return moved;
}

// There is an event in the rank's ring that was not there before.
void Conductor::shown(Rank& rank) {
  if (rank.state == RankState::away) wake_sleeper(rank);
  if (!rank.events.copy_waiters.empty()) nudge(*rank.page);  // a copy that somebody waits for may have come in reach
}

void Conductor::flush_waiters(Rank& copier) {
  for (const RankId waiter : std::exchange(copier.events.copy_waiters, {})) {
    if (flush(ranks_[waiter.value])) ready_.push_back(waiter);
  }
}

}  // namespace dryfly
