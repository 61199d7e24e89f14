#include "core/motif/goal/player.hpp"

#include <algorithm>
#include <cmath>

#include "core/spec/spec.hpp"

namespace dryfly::motif::goal {

Player::Player(Job& job, Schedules& schedules, double calc_ps)
    : job_(job), schedules_(schedules), calc_ps_(calc_ps), lead_(job.costs().lead()) {
  DRYFLY_CHECK(schedules.count() <= job.count());
  first_stream_.reserve(job.count() + std::size_t{1});
  for (std::uint32_t rank = 0; rank < job.count(); ++rank) {
    const Range range = rank < schedules.count() ? schedules.ranks[rank] : Range{};
    first_stream_.push_back(static_cast<std::uint32_t>(streams_.size()));
    std::uint32_t streams = 0;
    for (std::uint32_t step = range.first; step < range.last; ++step) {
      streams = std::max(streams, schedules.steps[step].stream + std::uint32_t{1});
    }
    streams_.resize(streams_.size() + streams);
    left_.push_back(range.last - range.first);
    if (left_.back() != 0) ++ranks_left_;
    for (std::uint32_t step = range.first; step < range.last; ++step) {
      if (schedules.steps[step].waiting == 0) line_up(rank, step, Instant{});
    }
  }
  first_stream_.push_back(static_cast<std::uint32_t>(streams_.size()));
}

void Player::run(const std::string& file_name) {
  drive(job_);
  if (ranks_left_ != 0) stand_still(file_name);
}

Instant Player::end() const {
  Instant last{};
  for (const Stream& stream : streams_) last = std::max(last, stream.free);
  return last;
}

Duration Player::duration(const Step& step) const {
  return {static_cast<std::uint64_t>(std::llround(static_cast<double>(step.size) * calc_ps_))};
}

void Player::wake(Rank& rank) { advance(rank); }

void Player::completed(Rank& rank, std::uint32_t record, Instant visible) {
  const std::uint32_t step = beginning_ != no_step ? beginning_ : step_of_[record];
  beginning_ = no_step;
  line_up(rank.id(), step, visible);
  if (advancing_ == any_rank) return advance(rank);
  if (advancing_ != rank.id()) wake_at(rank, now());
}

// Steps come in the order of their instants as a rule.
void Player::line_up(std::uint32_t rank, std::uint32_t index, Instant ready) {
  Step& step = schedules_.steps[index];
  Stream& stream = streams_[first_stream_[rank] + step.stream];
  step.ready_ps = ready.ps;
  std::uint32_t before = stream.last;
  if (before != no_step && schedules_.steps[before].ready_ps > ready.ps) {
    before = no_step;
    for (std::uint32_t at = stream.first; schedules_.steps[at].ready_ps <= ready.ps;
         at = schedules_.steps[at].waiting) {
      before = at;
    }
  }
  std::uint32_t& link = before == no_step ? stream.first : schedules_.steps[before].waiting;
  if (stream.last == before) stream.last = index;
  step.waiting = stream.last == index ? no_step : link;
  link = index;
}

void Player::advance(Rank& rank) {
  advancing_ = rank.id();
  bool again = true;
  while (again) {
    again = false;
    for (std::uint32_t stream = first_stream_[rank.id()]; stream < first_stream_[rank.id() + 1]; ++stream) {
      while (take_one(rank, streams_[stream])) again = true;
    }
  }
  advancing_ = any_rank;
}

bool Player::take_one(Rank& rank, Stream& stream) {
  if (stream.first == no_step) return false;
  const std::uint32_t index = stream.first;
  Step& step = schedules_.steps[index];
  const Instant here = now();
  const Instant start = std::max({stream.free, Instant{step.ready_ps}, here});
  if (start > here + lead_) {
    if (stream.woken > here && stream.woken <= start) return false;
    wake_at(rank, start);
    stream.woken = start;
    return false;
  }
  stream.first = step.waiting;
  if (stream.first == no_step) stream.last = no_step;
  if (!step.begun) {
    begin(rank, stream, index, start);
  } else {
    const CpuCosts& costs = job_.costs().cpu;
    rank.set_clock(start);
    rank.work(step.kind == StepKind::send ? costs.sent : costs.received);
    stream.free = rank.now();
    end(rank, index, stream.free);
  }
  return true;
}

void Player::begin(Rank& rank, Stream& stream, std::uint32_t index, Instant start) {
  Step& step = schedules_.steps[index];
  step.begun = true;
  release(rank.id(), index, start, true);
  rank.set_clock(start);
  if (step.kind == StepKind::calc) {
    rank.work(duration(step));
    stream.free = rank.now();
    return end(rank, index, stream.free);
  }
  beginning_ = index;
  const Pending pending =
      step.kind == StepKind::send ? rank.isend(step.peer, step.tag, Bytes{step.size}) : rank.irecv(step.peer, step.tag);
  if (beginning_ != no_step) note(pending.record, index);
  beginning_ = no_step;
  stream.free = rank.now();
}

void Player::end(Rank& rank, std::uint32_t index, Instant at) {
  schedules_.steps[index].done = true;
  release(rank.id(), index, at, false);
  if (--left_[rank.id()] != 0) return;
  --ranks_left_;
  Instant last{};
  for (std::uint32_t stream = first_stream_[rank.id()]; stream < first_stream_[rank.id() + 1]; ++stream) {
    last = std::max(last, streams_[stream].free);
  }
  rank.set_clock(last);
}

void Player::release(std::uint32_t rank, std::uint32_t index, Instant at, bool has_begun_only) {
  for (std::uint32_t next = schedules_.steps[index].followers; next < schedules_.steps[index + 1].followers; ++next) {
    const Follower follower = schedules_.followers[next];
    if (follower.waits_for_begin() != has_begun_only) continue;
    Step& step = schedules_.steps[follower.step()];
    step.ready_ps = std::max(step.ready_ps, at.ps);
    if (--step.waiting == 0) line_up(rank, follower.step(), Instant{step.ready_ps});
  }
}

void Player::note(std::uint32_t record, std::uint32_t step) {
  if (record >= step_of_.size()) step_of_.resize(std::size_t{record} + 1, no_step);
  step_of_[record] = step;
}

void Player::stand_still(const std::string& file_name) const {
  for (std::uint32_t rank = 0; rank < schedules_.count(); ++rank) {
    const Range& range = schedules_.ranks[rank];
    for (std::uint32_t index = range.first; index < range.last; ++index) {
      const Step& step = schedules_.steps[index];
      if (!step.begun || step.done) continue;
      const std::string peer = step.peer == any_rank ? "any rank" : "rank " + std::to_string(step.peer);
      throw SpecError(file_name + ", line " + std::to_string(step.line) + ", rank " + std::to_string(rank) +
                      ": the schedules wait for each other for ever; this rank's " +
                      (step.kind == StepKind::send ? "send to " : "receive from ") + peer + " does not end");
    }
  }
  DRYFLY_UNREACHABLE("a rank's steps end if all messages come");
}

}  // namespace dryfly::motif::goal
