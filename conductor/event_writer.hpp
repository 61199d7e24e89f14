// Events for the ranks: each gets the instant at which a CPU can see it, completion_latency after the NIC has said so,
// and goes to whoever puts it into the rank's ring.
#pragma once

#include <utility>

#include "conductor/open_command.hpp"
#include "conductor/rank.hpp"
#include "core/engine/engine.hpp"

namespace dryfly {

// Who is told what a rank has to learn.
class EventOutlet {
 public:
  virtual ~EventOutlet() = default;
  virtual void emit(RankId rank, PendingEvent&& pending) = 0;
  // A NIC has just changed memory of the rank's node.
  virtual void memory_changed(RankId rank) = 0;
};

// Who is told what is wrong with a rank.
class TroubleOutlet {
 public:
  virtual ~TroubleOutlet() = default;
  // Its command has ended in an error because nothing gets through to the other.
  virtual void unreachable(RankId rank, RankId other) = 0;
  // What the rank has put into its ring is no command, for this reason.
  virtual void damaged(RankId rank, const char* reason) = 0;
};

class EventWriter {
 public:
  EventWriter(const Engine& engine, EventOutlet& outlet, Duration completion_latency)
      : engine_(engine), outlet_(outlet), completion_latency_(completion_latency) {}

  // The event that answers a command: for the process that has issued it, whoever is that rank by now.
  static PendingEvent answer_to(const OpenCommand& open, wire::EventKind kind);
  // An event that answers nothing that the process has asked: for one of its end-points.
  static PendingEvent news_for(const Rank& rank, EndpointId endpoint, wire::EventKind kind);

  void write(RankId rank, PendingEvent&& pending) {
    pending.event.at_ps = (engine_.now() + completion_latency_).ps;
    outlet_.emit(rank, std::move(pending));
  }

 private:
  const Engine& engine_;
  EventOutlet& outlet_;
  Duration completion_latency_;
};

}  // namespace dryfly
