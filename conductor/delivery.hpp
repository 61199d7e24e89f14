// Events on their way to a rank: in order, into its ring as far as they may be shown. A completion whose payload
// another rank has yet to copy is held back until it has.
#pragma once

#include <cstdint>
#include <vector>

#include "conductor/batons.hpp"
#include "conductor/clock.hpp"
#include "conductor/event_writer.hpp"
#include "conductor/rank.hpp"
#include "conductor/segment.hpp"
#include "core/engine/engine.hpp"

namespace dryfly {

class Delivery final : public EventOutlet {
 public:
  Delivery(const Engine& engine, const Segment& segment, std::vector<Rank>& ranks, Clock& clock, Batons& batons);

  // The rank's events come in the order of their instants.
  void emit(RankId rank, PendingEvent&& pending) override;
  void memory_changed(RankId rank) override;
  void tell(RankId rank, const wire::News& news) override;

  // Moves pending events into the ring as far as they may be shown; true if at least one went.
  bool flush(Rank& rank);
  // An event that is due at that instant is held back until another rank has copied a payload: the rank waits for the
  // copy, not for time. It cannot wait for itself: the message that the copy belongs to was due at its target before
  // this event. One that only finds the ring full does not count: the rank has to take first what is there.
  bool waits_for_copy(Rank& rank, std::uint64_t instant);
  // The rank has copied, stands at a gate, or has gone: for those that wait for it.
  void flush_waiters(Rank& copier);
  // Its process has ended: what has not been shown never will be.
  void forget(Rank& rank);

 private:
  bool copy_is_missing(const PendingEvent& pending) const;
  // Makes a copy in place of a rank that cannot learn of it: its ring is full, and it takes nothing where it stands.
  bool copy_for(Rank& copier, std::uint64_t number);
  void shown(Rank& rank);
  void show_news(Rank& rank);
  void drop(const PendingEvent& pending);

  const Engine& engine_;
  const Segment& segment_;
  std::vector<Rank>& ranks_;
  Clock& clock_;
  Batons& batons_;
};

}  // namespace dryfly
