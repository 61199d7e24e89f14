// Virtual time: up to where each rank may act, and up to where the network may be simulated.
//
// Each rank has a bound, the earliest instant at which it may still act. What it does at t reaches its NIC a command's
// latency later, so every network event before (smallest bound + that latency) is final and is run. What a NIC reports
// at t is visible to a CPU a completion's latency later. Where a rank watches memory that NICs change, neither latency
// may be used: memory shows a change at its instant.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "conductor/batons.hpp"
#include "conductor/bound_heap.hpp"
#include "conductor/distances.hpp"
#include "conductor/rank.hpp"
#include "core/engine/engine.hpp"

namespace dryfly {

// Somebody who looks at the simulation at the ends of steps of virtual time, and changes nothing.
class StepWatcher {
 public:
  virtual ~StepWatcher() = default;
  virtual Instant step_end() const = 0;
  // All before step_end() has happened, and nothing more will before `next`.
  virtual void close_step(Instant next) = 0;
};

class Clock {
 public:
  // `served`: the ranks' pages tell who is outside virtual time.
  Clock(Engine& engine, std::vector<Rank>& ranks, const Distances& distances, bool served);

  // Virtual time is that of the ranks from start() to end(): before, they initialize, and after, they finalize.
  void start(Instant at);
  void end() { phase_ = Phase::over; }
  bool has_started() const { return phase_ != Phase::before; }
  bool has_ended() const { return phase_ == Phase::over; }
  bool runs() const { return phase_ == Phase::running; }

  // What the rank does, and its bound. The instants of its gate have been set before.
  void set_state(Rank& rank, RankState state, std::uint64_t bound);
  // The rank waits, and has something to see from that instant on. False if it had before.
  bool bring_forward(const Rank& rank, std::uint64_t instant);
  // It waits, and has something in its ring.
  void make_ready(const Rank& rank) { ready_.push_back(rank.id); }
  // In exchange for an empty vector, whose memory is used again.
  void take_ready(std::vector<RankId>& ready) { ready_.swap(ready); }

  // Runs the network up to there, or less far where a rank gets something to see earlier. Then everything before
  // processed_until() is done, and none will be added there. True if anything has happened. `to_last_event`: up to
  // there nothing but what happened is certain.
  bool run_network(Instant limit, bool to_last_event);
  Instant processed_until() const { return processed_until_; }
  // From now on the network stops where the watcher's steps end; nullptr: it does not.
  void watch_steps(StepWatcher* watcher) { watcher_ = watcher; }

  // How far the network may be ahead of the ranks: not at all where one watches memory that NICs change.
  std::uint64_t lookahead_ps() const { return memory_watched_ ? 0 : distances_.least().command.ps; }
  // A rank at an earlier instant than this has all that it can see there. Memory shows changes up to the instant
  // itself.
  std::uint64_t visible_until() const {
    return processed_until_.ps + (memory_watched_ ? 1 : distances_.least().completion.ps);
  }
  // The bound that the slowest rank has to reach before anything more can be done.
  std::uint64_t needed_bound(const Batons& batons);

  void watch_memory() { memory_watched_ = true; }
  bool memory_is_watched() const { return memory_watched_; }
  const Distances& distances() const { return distances_; }
  Distances& distances() { return distances_; }
  BoundHeap& bounds() { return bounds_; }
  const BoundHeap& bounds() const { return bounds_; }
  std::uint32_t running() const { return running_; }
  bool is_anybody_ready() const { return !ready_.empty(); }
  // Ranks that wait for an instant (polling, timed), by that instant.
  const std::set<std::pair<std::uint64_t, std::uint32_t>>& by_instant() const { return by_instant_; }

 private:
  enum class Phase : std::uint8_t { before, running, over };

  // As far as limit_, which may be lowered meanwhile.
  void run_engine();
  void leave_instant(const Rank& rank);

  Engine& engine_;
  Distances distances_;
  bool served_;
  BoundHeap bounds_;
  std::set<std::pair<std::uint64_t, std::uint32_t>> by_instant_;
  std::vector<RankId> ready_;  // have an event and are still waiting to be released
  Phase phase_ = Phase::before;
  Instant processed_until_{};
  Instant limit_{};  // of the engine run under way
  StepWatcher* watcher_ = nullptr;
  std::uint32_t running_ = 0;
  bool memory_watched_ = false;  // a rank watches memory (RankPage::watches_memory)
};

}  // namespace dryfly
