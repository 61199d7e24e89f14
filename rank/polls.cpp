#include "rank/polls.hpp"

#include <sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/unit/check.hpp"

namespace dryfly::rank {

namespace {

using namespace wire;

// Free polls before each event in a blocking call. A lock of a window of one's own takes two of them, in which the
// library talks to itself.
constexpr std::uint32_t free_before_event = 8;
// A library that copied at each poll, whether or not it has work, would never come to wait.
constexpr std::uint32_t copying_max = 1U << 16;
// A test loop that has found nothing this often in a row is treated as waiting in small steps.
constexpr std::uint32_t polls_before_stepping = 64;
constexpr std::uint64_t step_ps_max = 1'000'000;  // 1 us of virtual time
constexpr std::uint64_t look_each_ps = 1'000'000;
constexpr std::uint64_t threaded_step_ps = 100'000;  // doubled with each step, so that a long wait takes few
constexpr std::uint32_t threaded_doublings = 17;     // up to 13 ms
constexpr std::uint64_t tests_of_a_wait = 1024;
constexpr long beside_computing_ns = 20'000;
constexpr std::uint32_t offers_before_pause = 8;  // of the processor, while another thread is to go on

constexpr std::uint64_t served_first_step_ps = 100'000;
constexpr std::uint32_t served_doublings = 13;  // up to 0.8 ms
constexpr std::uint32_t crowded_doublings = 3;  // up to 0.8 us

constexpr long outside_first_sleep_ns = 50'000;
constexpr std::uint32_t outside_doublings = 8;

std::uint32_t at_most(std::uint32_t count, std::uint32_t most) { return count < most ? count : most; }

}  // namespace

bool Polls::take_free_poll() {
  only_looks_ = false;
  const CallMode mode = self_->mode();
  const bool blocking = mode == CallMode::blocking || mode == CallMode::unmarked;
  if (!blocking) return false;
  note_clock();
  const std::uint32_t copies = self_->copies.load(std::memory_order_relaxed);
  if (std::exchange(copies_seen_, copies) != copies && copying_ < copying_max) {
    ++copying_;
    free_ = 0;
    only_looks_ = self_->now() - looked_ps_ >= look_each_ps && !self_->has_threads();
  }
  if (!only_looks_ && free_ < free_before_event) {
    ++free_;
    return true;
  }
  looked_ps_ = self_->now();
  return false;
}

void Polls::note_clock() {
  const std::uint64_t readings = page_->times.clock_readings.count;
  timed_ = std::exchange(readings_seen_, readings) != readings ? timed_ + 1 : 0;
}

bool Polls::idle() {
  if (events_.visible(self_->now()) != nullptr) return true;
  if (only_looks_) return false;
  const CallMode mode = self_->mode();
  ++empty_;
  if (mode == CallMode::outside) return wait_outside();
  if (self_->has_threads()) {
    self_->threads.one_waits.store(1, std::memory_order_seq_cst);
    const bool found = wait_beside_threads(mode);
    self_->threads.one_waits.store(0, std::memory_order_seq_cst);
    return found;
  }
  if (header_->served != 0 && mode == CallMode::unmarked) {
    return wait_until(GateKind::wait_until, self_->now() + served_step_ps());
  }
  const bool by_clock = mode == CallMode::unmarked && timed_ > free_before_event;
  if (mode == CallMode::testing || by_clock) {
    if (empty_ <= polls_before_stepping) return poll_exactly();
    return wait_until(GateKind::wait_until, self_->now() + step_ps_max);
  }
  return wait_until(GateKind::wait, far_future);
}

bool Polls::idle_until(std::uint64_t deadline_ps) {
  const std::uint64_t now = self_->now();
  if (events_.visible(now) != nullptr) return true;
  if (deadline_ps <= now) return poll_exactly();
  if (header_->served != 0) {  // another thread of this process may want the provider meanwhile
    const std::uint64_t step = served_step_ps();
    ++empty_;
    if (step < deadline_ps - now) deadline_ps = now + step;
  }
  return wait_until(GateKind::wait_until, deadline_ps);
}

void Polls::settle() {
  baton_.renew();  // with it, a rank must not wait for instants that its node has not reached
  // Events come in the order of their instants, so a later one at the head proves that nothing more is visible yet.
  // Changes of memory are no events, so there it proves nothing.
  const Event* head = events_.oldest();
  const bool proven = head != nullptr && head->at_ps > self_->now() && !self_->watches();
  if (page_->horizon_ps.load(std::memory_order_acquire) >= self_->now() || proven) return;
  // Several threads renew no baton, so what this one has may be for an instant long ago, and the node waits for it.
  if (baton_.is_used() && self_->has_threads()) baton_.give_back();
  gate_.stop(GateKind::poll, 0);
}

bool Polls::may_sleep() {
  char bytes[64];
  while (recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
  }
  if (jump_to_event()) return false;
  page_->wants_byte.store(1, std::memory_order_seq_cst);
  gate_.stop(GateKind::outside, far_future);
  if (events_.oldest() == nullptr) return true;
  page_->wants_byte.store(0, std::memory_order_relaxed);
  gate_.stop(GateKind::inside, far_future);
  return !jump_to_event();
}

bool Polls::jump_to_event() {
  const Event* event = events_.oldest();
  if (event == nullptr) return false;
  if (event->at_ps > self_->now()) move_clock_to(event->at_ps);
  return true;
}

void Polls::move_clock_to(std::uint64_t at_ps) {
  const std::uint64_t now = self_->now();
  DRYFLY_CHECK(at_ps > now);
  const std::uint64_t resumes_ps = self_->noise.resume_ps(at_ps);
  self_->pass_to(resumes_ps);
  self_->count_waiting(resumes_ps - now);
  self_->set_clock(resumes_ps);
  gate_.publish();
}

bool Polls::poll_exactly() {
  settle();
  if (events_.visible(self_->now()) != nullptr) return true;
  looked_ps_ = self_->now();
  charge_poll();
  return false;
}

bool Polls::wait_until(GateKind kind, std::uint64_t deadline_ps) {
  if (baton_.is_used()) return wait_with_node(kind, deadline_ps);
  if (events_.oldest() == nullptr) stop_beside_streams(kind, deadline_ps);
  const Event* event = events_.oldest();
  // What was visible all along is found by the poll itself, whether or not it had reached the ring when we looked.
  if (event != nullptr && event->at_ps <= self_->now()) return true;
  if (event == nullptr && (kind == GateKind::wait || deadline_ps == far_future)) {
    begin_free_polls();  // everything stands still, and each rank gets its free polls again
    return false;
  }
  charge_poll();
  if (event != nullptr && event->at_ps <= deadline_ps) {
    jump_to_event();
    charge_wake();
    return true;
  }
  if (deadline_ps > self_->now()) move_clock_to(deadline_ps);
  return false;
}

// Streams of the rank's GPU go on while it waits, and it does not hear of them: its clock stays where it is.
void Polls::stop_beside_streams(GateKind kind, std::uint64_t deadline_ps) {
  while (streams_.are_active()) {
    const std::uint64_t next = streams_.next_ps();
    const bool acts_first = next < deadline_ps;
    gate_.stop_for_news(acts_first ? GateKind::wait_until : kind, acts_first ? next : deadline_ps);
    const News* news = streams_.oldest();  // before the events: what came before it is there then
    const Event* event = events_.oldest();
    const std::uint64_t event_ps = event != nullptr ? event->at_ps : far_future;
    const std::uint64_t news_ps = news != nullptr ? news->at_ps : far_future;
    if (event != nullptr && event_ps <= news_ps && event_ps <= next) return;
    if (news != nullptr && news_ps <= next && news_ps <= deadline_ps) {
      streams_.take();
    } else if (acts_first) {
      streams_.act(next);
    } else {
      return;
    }
  }
  gate_.stop(kind, deadline_ps);
}

// Where the ranks of a node talk through memory, a wait ends at an event, at the deadline, or when another rank of the
// node may have written. The rank is always asked for, and told the instant: what it finds in memory must not depend on
// whether its next event is in the ring already.
bool Polls::wait_with_node(GateKind kind, std::uint64_t deadline_ps) {
  const std::uint64_t waited = gate_.wait(kind, deadline_ps);
  begin_free_polls();
  self_->has_acted.store(0, std::memory_order_relaxed);
  if (waited != 0) gate_.publish();
  if (events_.visible(self_->now()) != nullptr) {
    if (waited != 0) charge_wake();
    return true;
  }
  // Behind the end of virtual time nobody moves a rank's clock but itself.
  return page_->all_ended.load(std::memory_order_acquire) != 0 && jump_to_event();
}

// In MPI_Init and MPI_Finalize the library may poll for what is no event of ours. So the rank sleeps, but only for a
// while of wall time, longer each time nothing has come.
bool Polls::wait_outside() {
  if (jump_to_event()) return true;
  gate_.stop(GateKind::wait, far_future, outside_first_sleep_ns << at_most(empty_, outside_doublings));
  return jump_to_event();
}

// Another thread of this rank may be about to act: wait in growing steps, so that it gets its chance. What it does then
// comes late by at most the time that this thread has waited already. While another computes, or only lacks a
// processor, no further than that one has come.
bool Polls::wait_beside_threads(CallMode mode) {
  sched_yield();
  const std::uint32_t turns = self_->threads.turns.load(std::memory_order_relaxed);
  if (std::exchange(turns_seen_, turns) != turns) {  // it has acted
    empty_ = 1;
    tested_ps_ = 0;
  }
  const std::uint64_t now = self_->now();
  const std::uint64_t reach = self_->threads.reach != nullptr ? self_->threads.reach() : far_future;
  std::uint64_t step = threaded_step_ps << at_most(empty_, threaded_doublings);
  if (mode == CallMode::testing) {
    note_clock();
    step = std::min(step, longest_test_ps(reach));
    tested_ps_ += step;
  }
  if (reach >= now + step) return wait_until(GateKind::wait_until, now + step);
  empty_ = 1;
  if (reach > now) return wait_until(GateKind::wait_until, reach);
  if (++held_back_ % offers_before_pause != 0) return false;
  const timespec pause{.tv_sec = 0, .tv_nsec = beside_computing_ns};
  syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, nullptr);  // the system call: real time
  return false;
}

// A test returns, and its loop may go by the clock or do other things. Where another thread is known to go on at a
// later instant, as one that sleeps, the loop is taken to be for that one: then a test takes as much of what tests
// before it have taken as nobody will notice.
std::uint64_t Polls::longest_test_ps(std::uint64_t reach) const {
  if (reach == far_future || timed_ > free_before_event) return step_ps_max;
  return std::max(step_ps_max, tested_ps_ / tests_of_a_wait);
}

// A program on a served fabric that only polls may do anything between two polls, and other programs may come at any
// time. So a poll that finds nothing waits, but not for long: in steps that grow, and hardly at all where another
// thread wants the provider.
std::uint64_t Polls::served_step_ps() const {
  return served_first_step_ps << at_most(empty_, crowded_ ? crowded_doublings : served_doublings);
}

}  // namespace dryfly::rank
