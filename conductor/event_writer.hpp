// Events for the ranks: each gets the instant at which a CPU can see it, as much later than it came about as NIC or
// memory are away, and goes to whoever puts it into the rank's ring, in the order of these instants.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "conductor/distances.hpp"
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
  // They come in the order of their instants.
  virtual void tell(RankId rank, const wire::News& news) = 0;
};

// Who is told what is wrong with a rank.
class TroubleOutlet {
 public:
  virtual ~TroubleOutlet() = default;
  // Its command has ended in an error because nothing gets through to the other.
  virtual void unreachable(RankId rank, RankId other) = 0;
  // What the rank has put into its ring is no command, for this reason.
  virtual void damaged(RankId rank, const char* reason) = 0;
  // Its NIC has no entry for work that it defers: the first of the job.
  virtual void without_entry(RankId rank) = 0;
};

class EventWriter {
 public:
  EventWriter(Engine& engine, EventOutlet& outlet, std::size_t rank_count, const Distances& distances)
      : engine_(engine), outlet_(outlet), distances_(distances), told_ps_(rank_count) {}

  // The event that answers a command: for the process that has issued it, whoever is that rank by now.
  static PendingEvent answer_to(const OpenCommand& open, wire::EventKind kind);
  // An event that answers nothing that the process has asked: for one of its end-points.
  static PendingEvent news_for(const Rank& rank, EndpointId endpoint, wire::EventKind kind);

  // A rank that also hears of memory would not hear in the order of instants: what its NIC says is kept until nothing
  // that it can see earlier will come.
  void write(RankId rank, PendingEvent&& pending) {
    const HostLatencies& way = distances_.of(EndpointId{wire::make_address(rank.value, pending.event.endpoint)});
    pending.event.at_ps = way.at_cpu(engine_.now()).ps;
    if (distances_.has_memory(rank) && way.completion > distances_.least().completion) {
      return keep(rank, std::move(pending));
    }
    emit(rank, std::move(pending));
  }
  // The oldest event that is kept for the rank is due.
  void tell(RankId rank);

  // Engine events for what is kept that there have been, and those that are still to come.
  std::uint64_t events_scheduled() const { return events_scheduled_; }
  std::uint64_t events_pending() const { return events_scheduled_ - events_handled_; }

 private:
  void keep(RankId rank, PendingEvent&& pending);
  // Not before what it has been told already: the rank may have opened its first end-point in memory since.
  void emit(RankId rank, PendingEvent&& pending) {
    std::uint64_t& told_ps = told_ps_[rank.value];
    pending.event.at_ps = told_ps = std::max(pending.event.at_ps, told_ps);
    outlet_.emit(rank, std::move(pending));
  }

  Engine& engine_;
  EventOutlet& outlet_;
  const Distances& distances_;
  std::vector<std::uint64_t> told_ps_;                                // by rank: of its latest event
  std::unordered_map<std::uint32_t, std::deque<PendingEvent>> kept_;  // by rank; looked up only
  std::uint64_t events_scheduled_ = 0;
  std::uint64_t events_handled_ = 0;
};

}  // namespace dryfly
