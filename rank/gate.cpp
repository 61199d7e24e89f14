#include "rank/gate.hpp"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include <algorithm>

#include "wire/futex.hpp"

namespace dryfly::rank {

namespace {

using namespace wire;

constexpr int spin_steps = 200;
constexpr std::uint32_t spinners_max = 2;
constexpr long nap_ns = 200'000'000;
constexpr long patience_of_failed_ns = 2'000'000'000;

bool releases(std::uint32_t word, std::uint32_t ticket) { return word >> nudge_bits == (ticket & ticket_mask); }

}  // namespace

void Gate::publish() {
  const std::uint64_t at = instant();
  // A rank that watches memory sees it as it was at its last gate: until the next one the network stays there.
  if (!self_->watches()) page_->clock_ps.store(at, std::memory_order_seq_cst);
  if (at >= page_->notify_at_ps.load(std::memory_order_seq_cst)) {
    page_->notify_at_ps.store(far_future, std::memory_order_relaxed);
    attention_.raise();
  }
  // Outside virtual time nobody waits for this clock, and the rank may block elsewhere before its next poll.
  if (self_->mode() == CallMode::outside) attention_.raise();
  // Let go between this call's beginning and now: what it has just pushed is to be taken all the same.
  if (page_->away.load(std::memory_order_seq_cst) != 0) attention_.raise();
  payloads_.serve();
}

void Gate::stop(GateKind kind, std::uint64_t deadline_ps, long patience_ns) {
  const std::uint32_t ticket = ask(kind, deadline_ps);
  spin(ticket);
  if (!is_released(ticket) && !sleep(ticket, patience_ns)) {
    return stop(GateKind::none, 0);  // takes the place of the one that lasts too long
  }
  const std::uint64_t at_least = page_->release_clock_ps.load(std::memory_order_relaxed);
  // It may go on later than that, behind a detour; what it was released for is this instant.
  released_at_ps_ = std::max(at_least, self_->now());
  if (at_least > self_->now()) self_->set_clock(self_->noise.resume_ps(at_least));
  self_->others_on_core = page_->share.others_on_core;
}

void Gate::stop_to_fail() {
  const std::int64_t until_ns = MonotonicClock::now_ns() + patience_of_failed_ns;
  do {
    stop(GateKind::fail, far_future, nap_ns);
    // A nap that is over, or a nudge, has ended the request as one of no kind.
  } while (page_->gate.kind == GateKind::none && MonotonicClock::now_ns() < until_ns);
}

std::uint64_t Gate::wait(GateKind kind, std::uint64_t deadline_ps) {
  const std::uint64_t before = self_->now();
  stop(kind, deadline_ps);
  const std::uint64_t waited = self_->now() - before;
  if (waited != 0) self_->count_waiting(waited);
  return waited;
}

std::uint32_t Gate::ask(GateKind kind, std::uint64_t deadline_ps) {
  self_->end_telling();
  // The conductor must have seen that a rank waits for changes of its memory before the network brings any.
  if (!self_->watches()) page_->clock_ps.store(instant(), std::memory_order_relaxed);
  page_->gate.kind = kind;
  page_->gate.at_ps = instant();
  page_->gate.deadline_ps = deadline_ps;
  page_->gate.has_acted = self_->has_acted.load(std::memory_order_relaxed);
  const std::uint32_t ticket = page_->gate.count.load(std::memory_order_relaxed) + 1;
  page_->gate.count.store(ticket, std::memory_order_seq_cst);
  attention_.raise();
  return ticket;
}

bool Gate::is_released(std::uint32_t ticket) const {
  return releases(page_->released.load(std::memory_order_acquire), ticket);
}

// A short spin saves both futex calls where few ranks are in play; with many, each would only keep the processor from
// one that has work, as it would from the conductor where ranks gather on its processor.
void Gate::spin(std::uint32_t ticket) {
  if (header_->gathering_processor.load(std::memory_order_relaxed) != 0) return;
  if (header_->spinning_ranks.fetch_add(1, std::memory_order_relaxed) < spinners_max) {
    spinner_.spin(spin_steps, [&] { return is_released(ticket); });
    sidestep_.after_spin(header_->conductor_processor.load(std::memory_order_relaxed));
  }
  header_->spinning_ranks.fetch_sub(1, std::memory_order_relaxed);
}

// False: it has lasted longer than patience allows.
bool Gate::sleep(std::uint32_t ticket, long patience_ns) {
  const Sidestep::Stay stay(header_->gathering_processor.load(std::memory_order_relaxed));
  page_->asleep.store(1, std::memory_order_seq_cst);
  bool released = false;
  for (bool patient = true; patient;) {
    const std::uint32_t seen = page_->released.load(std::memory_order_seq_cst);
    released = releases(seen, ticket);
    if (released || is_recalled()) break;
    payloads_.serve();
    payloads_.copy_early(events_);
    futex_wait(page_->released, seen, patience_ns != 0 ? patience_ns : nap_ns);
    released = is_released(ticket);
    if (released) break;
    leave_if_job_is_over();
    patient = patience_ns == 0;
  }
  page_->asleep.store(0, std::memory_order_relaxed);
  return released;
}

bool Gate::is_recalled() {
  const GateKind kind = page_->gate.kind;
  const bool has_no_end =
      (kind == GateKind::wait || kind == GateKind::wait_until) && page_->gate.deadline_ps == far_future;
  return has_no_end && self_->threads.recall.load(std::memory_order_seq_cst) != 0 &&
         self_->threads.recall.exchange(0) != 0;
}

void Gate::leave_if_job_is_over() const {
  pollfd watched{socket_, POLLRDHUP, 0};
  const bool conductor_gone = ::poll(&watched, 1, 0) > 0;
  // The launcher says why the job ends; a rank that is still here only has to go.
  if (conductor_gone && header_->served != 0) {
    fprintf(stderr, "dryfly: the fabric is no longer served; this process ends\n");
  }
  if (conductor_gone) _exit(70);
}

}  // namespace dryfly::rank
