#include "core/motif/job/rank.hpp"

#include <algorithm>
#include <string>

#include "core/motif/job/job.hpp"

namespace dryfly::motif {
namespace {

// Far enough from where instants end for anything that is under way then.
constexpr Instant last_instant{std::uint64_t{100} * 86'400 * 1'000'000'000'000};

}  // namespace

std::uint32_t Rank::count() const { return job_->count(); }

Pending Rank::isend(std::uint32_t to, std::uint32_t tag, Bytes size, Lane lane) {
  return job_->send(*this, to, tag, size, lane);
}
Pending Rank::irecv(std::uint32_t from, std::uint32_t tag) { return job_->receive(*this, from, tag); }
Pending Rank::put(std::uint32_t to, Bytes size, Told told) { return job_->access(*this, Leg::put, to, size, told); }
Pending Rank::get(std::uint32_t from, Bytes size, Told told) {
  return job_->access(*this, Leg::read_request, from, size, told);
}

Reductions& Rank::reductions() { return job_->reductions_; }

Rank::Waiting Rank::wait_all() {
  want_ = Want::all;
  return {*this};
}

Rank::Waiting Rank::wait(Pending pending) { return wait(pending, {}); }

Rank::Waiting Rank::wait(Pending first, Pending second) {
  const bool nothing = first.record == no_record && second.record == no_record;
  want_ = nothing ? Want::nothing : Want::some;
  until_ = {};
  job_->want(*this, first);
  job_->want(*this, second);
  return {*this};
}

void Rank::work(Duration cost) {
  clock_ = job_->noises_.after(id_, clock_, cost);
  if (clock_ > last_instant) {
    want_ = Want::nothing;
    throw SpecError("rank " + std::to_string(id_) + " is still at work after 100 days: virtual time ends there");
  }
}

void Rank::see(Instant visible) {
  if (!waits()) {
    received_seen_ = std::max(received_seen_, visible);
  } else if (clock_ < visible) {
    clock_ = job_->noises_.awake(id_, visible);
  }
}

Instant Rank::sees_it() const { return std::max(clock_, want_ == Want::all ? own_seen_ : until_); }

void Rank::pay_for_own() {
  if (own_seen_ > clock_) return;
  work(own_cost_);
  own_cost_ = {};
}

// What is complete already may not be visible yet.
bool Rank::Waiting::await_ready() const {
  if (rank.want_ == Want::nothing) return true;
  rank.see(rank.received_seen_);
  rank.work(rank.owed_);
  rank.owed_ = {};
  if (!rank.has_what_it_wants() || rank.sees_it() > rank.clock_) return false;
  rank.pay_for_own();
  rank.want_ = Want::nothing;
  return true;
}

void Rank::Waiting::await_suspend(std::coroutine_handle<> resumed) const {
  rank.resumed_ = resumed;
  if (rank.has_what_it_wants()) rank.job_->resume_at(rank, rank.sees_it());
}

Instant Rank::watch(Pending pending) { return job_->watch(*this, pending); }

bool Rank::WaitingForAny::await_ready() const {
  rank.work(rank.owed_);
  rank.owed_ = {};
  return rank.watcher_->earliest() <= rank.clock_;
}

void Rank::WaitingForAny::await_suspend(std::coroutine_handle<> resumed) const {
  rank.resumed_ = resumed;
  rank.want_ = Want::any;
  const Instant earliest = rank.watcher_->earliest();
  if (earliest != never) rank.job_->wake_at(rank, earliest);
}

void Rank::WaitingForAny::await_resume() const noexcept {
  rank.work(rank.owed_);
  rank.owed_ = {};
  rank.pay_for_own();
}

void Rank::Computing::await_suspend(std::coroutine_handle<> resumed) const {
  rank.work(rank.owed_ + work);
  rank.owed_ = {};
  rank.resumed_ = resumed;
  rank.job_->resume_at(rank, rank.clock_);
}

void Rank::Gathering::await_suspend(std::coroutine_handle<> resumed) const {
  rank.work(rank.owed_);
  rank.owed_ = {};
  rank.resumed_ = resumed;
  rank.want_ = Want::time;
  Job& job = *rank.job_;
  job.gathered_until_ = std::max({job.gathered_until_, rank.clock_, job.engine_.now()});
  if (++job.gathered_ < job.count()) return;
  job.gathered_ = 0;
  for (Rank& each : job.ranks_) job.resume_at(each, job.gathered_until_);
}

void Rank::enter(std::uint16_t phase) { job_->phases_.enter(id_, phase, clock_); }

}  // namespace dryfly::motif
