#include "conductor/clock.hpp"

#include <algorithm>

namespace dryfly {

Clock::Clock(Engine& engine, std::vector<Rank>& ranks, const Distances& distances, bool served)
    : engine_(engine), distances_(distances), served_(served), bounds_(static_cast<std::uint32_t>(ranks.size())) {}

void Clock::start(Instant at) {
  DRYFLY_CHECK(phase_ == Phase::before);
  processed_until_ = at;
  phase_ = Phase::running;
}

void Clock::leave_instant(const Rank& rank) {
  [[maybe_unused]] const auto taken_out = by_instant_.erase({rank.until_ps, rank.id.value});
  DRYFLY_CHECK(taken_out == 1);
}

void Clock::set_state(Rank& rank, RankState state, std::uint64_t bound) {
  if (rank.state == RankState::running) --running_;
  if (rank.state == RankState::polling || rank.state == RankState::timed) leave_instant(rank);
  rank.state = state;
  if (served_) rank.page->away.store(state == RankState::away ? 1 : 0, std::memory_order_seq_cst);
  if (state == RankState::running) ++running_;
  if (state == RankState::polling || state == RankState::timed) {
    rank.until_ps = state == RankState::polling ? rank.gate.at_ps : rank.gate.deadline_ps;
    by_instant_.insert({rank.until_ps, rank.id.value});
  }
  bounds_.set(rank.id, bound);
}

bool Clock::bring_forward(const Rank& rank, std::uint64_t instant) {
  const std::uint64_t bound = std::max(instant, rank.gate.at_ps);
  if (bound >= bounds_.bound(rank.id)) return false;
  bounds_.set(rank.id, bound);
  if (bound + lookahead_ps() < limit_.ps) {
    limit_ = Instant{bound + lookahead_ps()};
    engine_.lower_limit(limit_);
  }
  ready_.push_back(rank.id);
  return true;
}

// Where all that there is to come comes later, the steps until then are over. While nothing is to come at all it is too
// early to tell; and where the engine was stopped somebody acts first.
void Clock::run_engine() {
  while (watcher_ != nullptr && watcher_->step_end() < limit_) {
    const Instant end = watcher_->step_end();
    const Instant next = engine_.next();
    if (next == never) return;
    if (next >= end) {
      watcher_->close_step(std::min(next, limit_));
    } else {
      engine_.run(end);
      if (engine_.limit() < end) return;
    }
  }
  if (engine_.next() < limit_) engine_.run(limit_);
}

bool Clock::run_network(Instant limit, bool to_last_event) {
  limit_ = limit;
  const std::uint64_t before = engine_.events_run();
  run_engine();
  const Instant done = limit_ == never || to_last_event ? engine_.now() : limit_;
  processed_until_ = std::max(processed_until_, done);
  limit_ = {};
  return engine_.events_run() != before;
}

std::uint64_t Clock::needed_bound(const Batons& batons) {
  std::uint64_t needed = never.ps;
  if (const Instant next = engine_.next(); next != never) needed = next.ps + 1 - std::min(next.ps, lookahead_ps());
  const HostLatencies& least = distances_.least();
  const std::uint64_t latency = memory_watched_ ? 1 : least.command.ps + least.completion.ps;
  if (!by_instant_.empty()) {
    const std::uint64_t instant = by_instant_.begin()->first;
    needed = std::min(needed, instant + 1 - std::min(instant, latency));
  }
  if (const std::uint64_t instant = batons.visible_needed(); instant != never.ps) {
    needed = std::min(needed, instant + 1 - std::min(instant, latency));
  }
  // Only memory has to come to an instant before somebody is released at it.
  if (memory_watched_) {
    for (const RankId id : ready_) needed = std::min(needed, bounds_.bound(id));
  }
  return std::min(needed, batons.clock_needed());
}

}  // namespace dryfly
