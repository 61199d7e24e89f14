#include "core/motif/flight/traffic.hpp"

#include <algorithm>

namespace dryfly::motif::flight {

void Traffic::begin(Schedule& schedule, const Transfers& transfers) {
  for (const Transfer& each : transfers) {
    if (each.bytes == 0) continue;
    const Pending pending = each.is_send ? rank_.isend(each.peer, each.tag, Bytes{each.bytes}, schedule.lane_)
                                         : rank_.irecv(each.peer, each.tag);
    if (each.is_awaited) schedule.pending_.push_back({pending.record, rank_.watch(pending)});
  }
}

void Traffic::start_next(Schedule& schedule) {
  Transfers transfers;
  while (schedule.pending_.empty() && schedule.rounds_ != nullptr) {
    transfers.clear();
    if (schedule.rounds_->round(schedule.next_++, transfers)) {
      begin(schedule, transfers);
      continue;
    }
    const Duration rest = schedule.rounds_->rest();
    if (rest.ps > 0) schedule.pending_.push_back({no_record, rank_.now() + rest});
    schedule.rounds_ = nullptr;
  }
}

void Traffic::start(Schedule& schedule) {
  active_.push_back(&schedule);
  start_next(schedule);
  if (schedule.done()) active_.pop_back();
}

void Traffic::completed(std::uint32_t record, Instant visible) {
  for (Schedule* const schedule : active_) {
    for (Schedule::Request& request : schedule->pending_) {
      if (request.record == record && request.visible == never) {
        request.visible = visible;
        return;
      }
    }
  }
}

Instant Traffic::earliest() const {
  Instant first = until_;
  for (const Schedule* const schedule : active_) {
    for (const Schedule::Request& request : schedule->pending_) first = std::min(first, request.visible);
  }
  return first;
}

// Moves on each whose round is complete by now.
void Traffic::poll() {
  for (Schedule* const schedule : active_) {
    const auto is_open = [&](const Schedule::Request& request) { return request.visible > rank_.now(); };
    if (std::any_of(schedule->pending_.begin(), schedule->pending_.end(), is_open)) continue;
    schedule->pending_.clear();
    start_next(*schedule);
  }
  forget_done();
}

void Traffic::take() {
  for (Schedule* const schedule : active_) {
    std::erase_if(schedule->pending_, [&](const Schedule::Request& each) { return each.visible <= rank_.now(); });
    start_next(*schedule);
  }
  forget_done();
}

Task Traffic::wait(Rank& me, Schedule& schedule) {
  while (!schedule.done()) {
    co_await me.wait_for_any();
    take();
  }
}

Task Traffic::wait_for_all(Rank& me) {
  while (!active_.empty()) {
    co_await me.wait_for_any();
    take();
  }
}

Task Traffic::pass(Rank& me, Instant until) {
  until_ = until;
  while (me.now() < until) {
    co_await me.wait_for_any();
    take();
  }
  until_ = never;
}

void Traffic::forget_done() {
  std::erase_if(active_, [](const Schedule* schedule) { return schedule->done(); });
}

}  // namespace dryfly::motif::flight
