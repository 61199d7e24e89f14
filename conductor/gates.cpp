#include "conductor/gates.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "conductor/inbox.hpp"
#include "wire/futex.hpp"

namespace dryfly {

namespace {

// One that runs and one that is about to, so that a processor whose rank comes to its gate has another.
constexpr std::uint32_t running_for_each_processor = 2;

}  // namespace

Gates::Gates(const Segment& segment, std::vector<Rank>& ranks, Clock& clock, Batons& batons, Delivery& delivery)
    : segment_(segment),
      ranks_(ranks),
      clock_(clock),
      batons_(batons),
      delivery_(delivery),
      at_once_(running_for_each_processor * processors_allowed()) {}

Gates::Milestone Gates::open(Rank& rank, std::uint32_t ticket) {
  if (ticket == rank.gate.ticket) return Milestone::none;
  rank.gate.ticket = ticket;
  rank.gate.at_ps = rank.page->gate.at_ps;
  rank.gate.deadline_ps = wire::far_future;
  rank.gate.only_news = rank.page->gate.kind == wire::GateKind::news;
  rank.gate.heeds_news = rank.gate.only_news || rank.page->gate.heeds_news != 0;
  if (rank.state == RankState::away) rejoin(rank);
  delivery_.flush(rank);
  switch (rank.page->gate.kind) {
    case wire::GateKind::poll:
      poll(rank);
      break;
    case wire::GateKind::wait:
      wait(rank);
      break;
    case wire::GateKind::wait_until:
      wait_until(rank);
      break;
    case wire::GateKind::news:
      wait_for_news(rank);
      break;
    case wire::GateKind::start:
      return start(rank);
    case wire::GateKind::end:
      return end(rank);
    case wire::GateKind::meet:
      meet(rank);
      break;
    case wire::GateKind::fail:
      fail(rank);
      break;
    case wire::GateKind::baton:
      ask_for_baton(rank);
      break;
    case wire::GateKind::outside:
    case wire::GateKind::inside:
      rank.gate.outside = rank.page->gate.kind == wire::GateKind::outside;
      if (rank.gate.outside && clock_.runs() && !is_served()) ++outside_;
      release(rank, rank.gate.at_ps);
      break;
    case wire::GateKind::baton_back:
    case wire::GateKind::drain:
    case wire::GateKind::none:
      release(rank, rank.gate.at_ps);
      break;
  }
  return Milestone::none;
}

// A rank that was outside virtual time goes on where nothing it does can reach its NIC in the network's past.
void Gates::rejoin(Rank& rank) {
  const std::uint64_t done = clock_.processed_until().ps;
  const std::uint64_t least = done - std::min(done, clock_.lookahead_ps());
  if (rank.gate.at_ps >= least) return;
  rank.gate.at_ps = least;
  rank.gate.rejoin_ps = least;
}

void Gates::poll(Rank& rank) {
  ++polls_;
  if (!clock_.runs()) return release(rank, rank.gate.at_ps);
  clock_.set_state(rank, RankState::polling, rank.gate.at_ps);
}

void Gates::wait(Rank& rank) {
  ++waits_;
  if (batons_.passes_baton(rank)) return wait_for_baton(rank, RankState::waiting);
  wait_in_state(rank, RankState::waiting, never.ps);
}

void Gates::wait_until(Rank& rank) {
  ++waits_;
  rank.gate.deadline_ps = rank.page->gate.deadline_ps;
  if (!clock_.runs()) return release(rank, rank.gate.at_ps);
  if (batons_.passes_baton(rank)) return wait_for_baton(rank, RankState::waiting);
  const bool is_timed = rank.gate.deadline_ps != wire::far_future;
  wait_in_state(rank, is_timed ? RankState::timed : RankState::waiting, is_timed ? rank.gate.deadline_ps : never.ps);
}

// Other ranks of the node may hold its baton meanwhile: it touches no memory that they share.
void Gates::wait_for_news(Rank& rank) {
  ++waits_;
  if (!clock_.runs()) return release(rank, rank.gate.at_ps);
  rank.gate.deadline_ps = rank.page->gate.deadline_ps;
  const bool is_timed = rank.gate.deadline_ps != wire::far_future;
  wait_in_state(rank, is_timed ? RankState::timed : RankState::waiting, is_timed ? rank.gate.deadline_ps : never.ps);
}

// Until all are there it keeps the state `starting`.
Gates::Milestone Gates::start(Rank& rank) {
  if (clock_.has_started()) {
    release(rank, rank.gate.at_ps);
    return Milestone::none;
  }
  return ++starting_ == ranks_.size() ? Milestone::all_at_start : Milestone::none;
}

Gates::Milestone Gates::end(Rank& rank) {
  if (clock_.has_ended() || is_served()) {
    rank.page->all_ended.store(1);
    release(rank, rank.gate.at_ps);
    return Milestone::none;
  }
  if (!rank.gate.in_finalize) {
    rank.gate.in_finalize = true;
    rank.gate.end_ps = rank.gate.at_ps;
    ++ending_;
  }
  if (batons_.passes_baton(rank)) {
    wait_for_baton(rank, RankState::ending);
  } else {
    wait_in_state(rank, RankState::ending, never.ps);
  }
  return ending_ == ranks_.size() ? Milestone::all_at_end : Milestone::none;
}

void Gates::ask_for_baton(Rank& rank) {
  if (!batons_.passes_baton(rank)) return release(rank, rank.gate.at_ps);
  clock_.set_state(rank, RankState::queued, rank.gate.at_ps);
  batons_.give_back(rank, rank.gate.at_ps, rank.page->gate.has_acted != 0);
}

void Gates::meet(Rank& rank) {
  if (clock_.has_ended() || is_served()) return release(rank, rank.gate.at_ps);
  if (clock_.has_started()) clock_.set_state(rank, RankState::meeting, never.ps);
  if (batons_.passes_baton(rank)) batons_.give_back(rank, rank.gate.at_ps, rank.page->gate.has_acted != 0);
  const std::vector<RankId> all = meetings_.come(rank);
  std::uint64_t last_ps = 0;
  for (const RankId id : all) last_ps = std::max(last_ps, ranks_[id.value].gate.at_ps);
  const HostLatencies& latencies = clock_.distances().to_nic();
  const std::uint64_t instant = last_ps + latencies.command.ps + latencies.completion.ps;
  for (const RankId id : all) go_on_after_meeting(ranks_[id.value], instant);
}

// Somebody who fails earlier may still be on the way to this gate. That much later everybody has gone past.
void Gates::fail(Rank& rank) {
  if (!clock_.runs() || is_served()) return release(rank, rank.gate.at_ps);
  const HostLatencies& least = clock_.distances().least();
  rank.gate.at_ps += least.command.ps + least.completion.ps;
  clock_.set_state(rank, RankState::polling, rank.gate.at_ps);
  if (batons_.passes_baton(rank)) batons_.give_back(rank, rank.gate.at_ps, rank.page->gate.has_acted != 0);
}

void Gates::go_on_after_meeting(Rank& rank, std::uint64_t instant) {
  if (!clock_.has_started()) return release(rank, rank.gate.at_ps);
  rank.gate.at_ps = instant;
  if (!batons_.passes_baton(rank)) return clock_.set_state(rank, RankState::polling, instant);
  clock_.set_state(rank, RankState::queued, instant);
  batons_.give_back(rank, instant, false);
}

void Gates::wait_in_state(Rank& rank, RankState state, std::uint64_t bound) {
  clock_.set_state(rank, state, bound);
  // Events that came while it was running are in the ring or, held back, at the front of the overflow.
  const auto& overflow = rank.events.overflow;
  if (has_awaited(rank)) {
    clock_.bounds().set(rank.id, std::min(bound, rank.gate.at_ps));
    clock_.make_ready(rank);
  } else if (!rank.gate.only_news && !overflow.empty()) {
    clock_.bounds().set(rank.id, std::min(bound, std::max(rank.gate.at_ps, overflow.front().event.at_ps)));
  }
}

void Gates::wait_for_baton(Rank& rank, RankState state) {
  const std::uint64_t until = std::min(rank.gate.deadline_ps, next_event_ps(segment_, rank));
  clock_.set_state(rank, state, until == never.ps ? until : std::max(until, rank.gate.at_ps));
  batons_.give_back(rank, rank.gate.at_ps, rank.page->gate.has_acted != 0);
}

bool Gates::release_ready() {
  bool any = pass_batons();
  any |= release_those_with_events(at_once_);
  any |= release_those_at_their_instant();
  return any;
}

bool Gates::release_all_ready() { return release_those_with_events(static_cast<std::uint32_t>(ranks_.size())); }

bool Gates::pass_batons() {
  bool any = false;
  if (batons_.open_nodes().empty()) return any;
  const std::set<std::uint32_t> nodes = batons_.open_nodes();
  for (const std::uint32_t node : nodes) {
    Rank* rank = batons_.next(node, clock_.visible_until());
    if (rank == nullptr) continue;
    const std::uint64_t instant = clock_.bounds().bound(rank->id);
    if (delivery_.waits_for_copy(*rank, instant)) continue;
    batons_.take(*rank);
    release(*rank, instant);
    any = true;
  }
  return any;
}

bool Gates::release_those_with_events(std::uint32_t at_once) {
  bool any = false;
  if (clock_.running() >= at_once) return any;
  ready_.clear();
  clock_.take_ready(ready_);
  const auto instant = [this](RankId id) { return std::pair(clock_.bounds().bound(id), id.value); };
  std::ranges::sort(ready_, {}, instant);
  for (const RankId id : ready_) {
    Rank& rank = ranks_[id.value];
    if (clock_.running() >= at_once) {
      clock_.make_ready(rank);
      continue;
    }
    if (batons_.passes_baton(rank)) continue;
    const bool waits =
        rank.state == RankState::waiting || rank.state == RankState::timed || rank.state == RankState::ending;
    if (!waits || !has_awaited(rank)) continue;
    const std::uint64_t bound = clock_.bounds().bound(id);
    if (clock_.memory_is_watched() && bound > clock_.processed_until().ps) {
      clock_.make_ready(rank);  // memory has yet to come to that instant
      continue;
    }
    release(rank, std::max(rank.gate.at_ps, bound));
    any = true;
  }
  return any;
}

bool Gates::release_those_at_their_instant() {
  bool any = false;
  const auto& by_instant = clock_.by_instant();
  for (auto next = by_instant.begin(); next != by_instant.end() && next->first < clock_.visible_until();) {
    const auto [instant, index] = *next;
    Rank& rank = ranks_[index];
    ++next;  // a release takes only its own entry out of the set
    if (delivery_.waits_for_copy(rank, instant)) continue;
    if (failure_.keeps(rank)) {
      clock_.set_state(rank, RankState::meeting, never.ps);
      continue;
    }
    release(rank, rank.state == RankState::polling ? rank.gate.at_ps : clock_.bounds().bound(rank.id));
    any = true;
  }
  return any;
}

void Gates::release(Rank& rank, std::uint64_t clock) {
  std::uint64_t horizon = clock_.visible_until() - 1;
  const auto& overflow = rank.events.overflow;
  if (!overflow.empty()) horizon = std::min(horizon, overflow.front().event.at_ps - 1);
  if (!rank.news.empty()) horizon = std::min(horizon, rank.news.front().at_ps - 1);
  rank.page->horizon_ps.store(horizon, std::memory_order_relaxed);
  const bool is_told_instant = batons_.passes_baton(rank);
  const bool event_moves_clock =
      rank.state == RankState::waiting || rank.state == RankState::timed || rank.state == RankState::ending;
  rank.page->release_clock_ps.store(
      std::max(event_moves_clock && !is_told_instant ? 0 : clock, std::exchange(rank.gate.rejoin_ps, 0)),
      std::memory_order_relaxed);
  if (recorder_ != nullptr && event_moves_clock && !rank.gate.only_news && clock > rank.gate.at_ps)
    recorder_->wait({rank.gate.at_ps, clock, rank.id.value});
  rank.gate.only_news = false;
  if (clock_.runs()) {
    const bool outside = rank.gate.outside;
    clock_.set_state(rank, outside ? RankState::away : RankState::running, outside ? never.ps : clock);
  } else {
    clock_.set_state(rank, clock_.has_ended() ? RankState::ended : RankState::starting, never.ps);
  }
  if (!rank.seat.coming.empty()) take_share(rank, clock, event_moves_clock);
  rank.page->released.store(rank.gate.ticket << wire::nudge_bits, std::memory_order_seq_cst);
  if (rank.page->asleep.load(std::memory_order_seq_cst) != 0) {
    ++wakes_;
    wire::futex_wake(rank.page->released);
  }
}

// Which changes of its node a rank knows at an instant depends on that alone where all that came before is certain, as
// it is for one that has waited or looked.
void Gates::take_share(Rank& rank, std::uint64_t clock, bool has_waited) {
  const wire::GateKind kind = rank.page->gate.kind;
  if (!has_waited && kind != wire::GateKind::poll && kind != wire::GateKind::start) return;
  auto& coming = rank.seat.coming;
  while (!coming.empty() && coming.front().first <= clock) {
    rank.seat.share = coming.front().second;
    coming.erase(coming.begin());
  }
  wire::NodeShare share = rank.seat.share;
  share.node_of_job = rank.page->share.node_of_job;
  share.slow = rank.page->share.slow;
  rank.page->share = share;
}

void Gates::release_all_at_start(Instant start) {
  for (Rank& rank : ranks_) {
    delivery_.flush(rank);
    rank.gate.at_ps = start.ps;
    release(rank, start.ps);
  }
}

void Gates::release_all_at_end() {
  for (Rank& rank : ranks_) {
    if (rank.state == RankState::gone) continue;
    rank.page->all_ended.store(1);
    delivery_.flush(rank);
    // A rank that has come to MPI_Finalize may be at another gate: it serves the others' messages meanwhile.
    const bool at_gate = rank.state != RankState::running && rank.state != RankState::away;
    if (at_gate) release(rank, rank.gate.at_ps);
    clock_.set_state(rank, RankState::ended, never.ps);
  }
}

}  // namespace dryfly
