// Commands that the ranks have issued and that have not reached their NIC, or their node's memory: each does so as much
// later than its stamp as that is away, or now if that has passed, which happens outside virtual time only. So a rank
// has a line for each of the two. What goes out of an end-point with fences also waits for these (fences.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "conductor/distances.hpp"
#include "conductor/due.hpp"
#include "conductor/fences.hpp"
#include "conductor/open_command.hpp"
#include "core/engine/engine.hpp"
#include "core/unit/fetch.hpp"

namespace dryfly {

// What a rank's commands are on their way to.
enum class Line : std::uint32_t { to_nic, to_memory };
inline constexpr std::uint32_t line_count = 2;

class CommandQueue {
 public:
  CommandQueue(Engine& engine, OpenCommands& commands, std::size_t rank_count, const Distances& distances)
      : engine_(engine), commands_(commands), distances_(distances), queues_(rank_count) {}

  bool is_empty(RankId rank) const {
    return std::ranges::all_of(queues_[rank.value], [](const Queue& line) { return line.empty(); });
  }
  bool contains(RankId rank, std::uint32_t slot) const;
  // Of all ranks: there is no command of another kind. Looks at all, so it is not for often.
  bool holds_only_peeks() const;
  // Behind the rank's others on the same way. Commands of one line are in the order of their instants, so only the
  // oldest has a place among the events.
  void push(RankId rank, std::uint32_t slot) {
    const Line line = line_of(slot);
    queue(rank, line).push_back(slot);
    if (queue(rank, line).size() == 1) schedule_oldest(rank, line);
  }
  // The rank's oldest command of the line, if it is due; else no_slot, and it is scheduled.
  std::uint32_t take_due(RankId rank, Line line) {
    Queue& queue = this->queue(rank, line);
    if (queue.empty()) return no_slot;
    const std::uint32_t slot = queue.front();
    if (arrival(slot) > engine_.now()) {
      schedule_oldest(rank, line);
      return no_slot;
    }
    queue.pop_front();
    if (!queue.empty()) commands_.prefetch(queue.front());
    return slot;
  }
  // Takes out and releases the rank's commands of which this is true.
  template <class Predicate>
  void release_if(RankId rank, Predicate is_void) {
    for (Queue& line : queues_[rank.value]) {
      std::erase_if(line, [&](std::uint32_t slot) {
        if (!is_void(commands_[slot])) return false;
        commands_.release(slot);
        return true;
      });
    }
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

  // Of commands to NICs: nearly all are.
  void prefetch(RankId rank, unsigned stage) const {
    const Queue& queue = queues_[rank.value][0];
    if (stage == 0) fetch_line(&queue);
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
  using Queue = std::deque<std::uint32_t>;

  Queue& queue(RankId rank, Line line) { return queues_[rank.value][static_cast<std::size_t>(line)]; }
  Line line_of(std::uint32_t slot) const {
    return distances_.is_in_memory(commands_[slot].endpoint()) ? Line::to_memory : Line::to_nic;
  }
  Instant arrival(std::uint32_t slot) const {
    const OpenCommand& open = commands_[slot];
    return distances_.of(open.endpoint()).at_nic(Instant{open.command.at_ps});
  }
  void schedule_oldest(RankId rank, Line line);
  bool waits_for_fence(std::uint32_t slot);
  void go_on(EndpointId source);

  Engine& engine_;
  OpenCommands& commands_;
  const Distances& distances_;
  std::vector<std::array<Queue, line_count>> queues_;  // by rank and line, oldest first
  Fences fences_;
  std::uint64_t events_scheduled_ = 0;
  std::uint64_t events_handled_ = 0;
};

}  // namespace dryfly
