// Commands that the ranks have issued and that have not reached their NIC: each does so command_latency after its
// stamp, or now if that has passed, which happens outside virtual time only. What goes out of an end-point with fences
// also waits for these (fences.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "conductor/fences.hpp"
#include "conductor/open_command.hpp"
#include "core/engine/engine.hpp"

namespace dryfly {

class CommandQueue {
 public:
  CommandQueue(Engine& engine, OpenCommands& commands, std::size_t rank_count, Duration command_latency)
      : engine_(engine), commands_(commands), command_latency_(command_latency), queues_(rank_count) {}

  bool is_empty(RankId rank) const { return queues_[rank.value].empty(); }
  bool contains(RankId rank, std::uint32_t slot) const;
  // Of all ranks: there is no command of another kind. Looks at all, so it is not for often.
  bool holds_only_peeks() const;
  // Behind the rank's others. Whoever puts the first one there also schedules it.
  void push(RankId rank, std::uint32_t slot) { queues_[rank.value].push_back(slot); }
  // Commands of one rank are in the order of their instants, so only the oldest needs a place among the events.
  void schedule_oldest(RankId rank);
  // The rank's oldest command, if it is due; else no_slot, and it is scheduled.
  std::uint32_t take_due(RankId rank) {
    std::deque<std::uint32_t>& queue = queues_[rank.value];
    if (queue.empty()) return no_slot;
    const std::uint32_t slot = queue.front();
    if (at_nic(slot) > engine_.now()) {
      schedule_oldest(rank);
      return no_slot;
    }
    queue.pop_front();
    if (!queue.empty()) commands_.prefetch(queue.front());
    return slot;
  }
  // Takes out and releases the rank's commands of which this is true.
  template <class Predicate>
  void release_if(RankId rank, Predicate is_void) {
    std::erase_if(queues_[rank.value], [&](std::uint32_t slot) {
      if (!is_void(commands_[slot])) return false;
      commands_.release(slot);
      return true;
    });
  }

  // The end-point may use fences from now on.
  void open_fences(EndpointId endpoint) { fences_.open(endpoint); }
  // It uses none any more. The commands that still waited for one.
  std::vector<std::uint32_t> close_fences(EndpointId endpoint) { return fences_.close(endpoint); }
  // Whether a command that is due has to wait for a fence, or behind one.
  bool must_wait(std::uint32_t slot) { return fences_.in_use() && waits_for_fence(slot); }
  // What the end-point had sent out is complete. Those that waited for it go on as an event of their own, since the NIC
  // that reports this is in the middle of something.
  void completed(EndpointId source) {
    if (fences_.in_use()) go_on(source);
  }

  void prefetch(RankId rank, unsigned stage) const {
    const std::deque<std::uint32_t>& queue = queues_[rank.value];
    if (stage == 0) __builtin_prefetch(&queue);
    if (stage == 2 && !queue.empty()) commands_.prefetch(queue.front());
  }
  // Engine events for commands that there have been, and those that are still to come.
  std::uint64_t events_scheduled() const { return events_scheduled_; }
  std::uint64_t events_pending() const { return events_scheduled_ - events_handled_; }
  void event_handled() {
    DRYFLY_CHECK(events_handled_ < events_scheduled_);
    ++events_handled_;
  }

 private:
  Instant at_nic(std::uint32_t slot) const { return Instant{commands_[slot].command.at_ps} + command_latency_; }
  bool waits_for_fence(std::uint32_t slot);
  void go_on(EndpointId source);

  Engine& engine_;
  OpenCommands& commands_;
  Duration command_latency_;
  std::vector<std::deque<std::uint32_t>> queues_;  // by rank, oldest first
  Fences fences_;
  std::uint64_t events_scheduled_ = 0;
  std::uint64_t events_handled_ = 0;
};

}  // namespace dryfly
