#include "conductor/delivery.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "conductor/memory.hpp"
#include "wire/arena.hpp"

namespace dryfly {

namespace {

// To a process that sleeps in poll() on its socket.
void wake_sleeper(Rank& rank) {
  if (rank.page->wants_byte.exchange(0) == 0 || rank.process.line < 0) return;
  const char byte = 0;
  [[maybe_unused]] const auto sent = send(rank.process.line, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// At a gate that no event opens, so what its ring has no room for does not reach it before others have gone on.
bool takes_nothing(const Rank& rank) {
  return rank.state == RankState::queued || rank.state == RankState::polling || rank.state == RankState::meeting;
}

// At a gate that what comes at that instant opens.
bool waits_for(const Rank& rank, std::uint64_t at_ps) {
  return rank.state == RankState::waiting || rank.state == RankState::ending ||
         (rank.state == RankState::timed && at_ps <= rank.gate.deadline_ps);
}

}  // namespace

Delivery::Delivery(const Engine& engine, const Segment& segment, std::vector<Rank>& ranks, Clock& clock, Batons& batons)
    : engine_(engine), segment_(segment), ranks_(ranks), clock_(clock), batons_(batons) {}

void Delivery::emit(RankId id, PendingEvent&& pending) {
  Rank& rank = ranks_[id.value];
  const bool is_for_nobody = rank.state == RankState::gone || pending.tenancy != rank.process.tenancy;
  if (pending.copy_order != 0) {
    const std::uint64_t counted = rank.page->copies_done.load(std::memory_order_seq_cst);
    is_for_nobody ? rank.events.copies.drop(pending.copy_order, counted)
                  : rank.events.copies.show(pending.copy_order, counted);
  }
  if (is_for_nobody) return drop(pending);
  const std::uint64_t at = pending.event.at_ps;
  DRYFLY_CHECK(at >= rank.events.last_ps);
  rank.events.last_ps = at;
  // Nearly every event can be shown at once.
  const bool at_once = rank.events.overflow.empty() && pending.copy_number == 0 && write_event(segment_, rank, pending);
  if (at_once) {
    shown(rank);
  } else {
    rank.events.overflow.push_back(std::move(pending));
    if (rank.events.overflow.size() == 1) flush(rank);
  }

  if (!rank.gate.only_news && waits_for(rank, at) && clock_.bring_forward(rank, at) && batons_.passes_baton(rank))
    batons_.waits(rank);
}

void Delivery::tell(RankId id, const wire::News& news) {
  Rank& rank = ranks_[id.value];
  if (rank.state == RankState::gone) return;
  rank.news.push_back(news);
  show_news(rank);
  const bool waits = rank.gate.heeds_news && waits_for(rank, news.at_ps);
  if (waits && clock_.bring_forward(rank, news.at_ps) && batons_.passes_baton(rank)) batons_.waits(rank);
}

void Delivery::show_news(Rank& rank) {
  wire::RankPage& page = *rank.page;
  std::uint64_t head = page.news.head.load(std::memory_order_relaxed);
  while (!rank.news.empty() && head - page.news.tail.load(std::memory_order_acquire) < wire::NewsRing::most) {
    page.news.news[head % wire::NewsRing::most] = rank.news.front();
    rank.news.pop_front();
    page.news.head.store(++head, std::memory_order_release);
  }
}

// A rank that waits may wait for just this, so it gets to look: others look before they wait. One that has an event
// coming looks then.
void Delivery::memory_changed(RankId changed) {
  if (!clock_.memory_is_watched() || !clock_.runs()) return;
  for (const std::uint32_t index : batons_.ranks_of(ranks_[changed.value].node)) {
    Rank& rank = ranks_[index];
    const bool waits = !rank.gate.only_news && (rank.state == RankState::waiting || rank.state == RankState::timed);
    const bool watches = rank.page->watches_memory.load(std::memory_order_relaxed) != 0;
    const bool has_event = !rank.events.overflow.empty() || has_untaken(rank);
    if (!waits || !watches || has_event) continue;
    PendingEvent pending;
    pending.event = {};
    pending.event.kind = wire::EventKind::memory_changed;
    pending.event.at_ps = (engine_.now() + clock_.distances().least().completion).ps;
    emit(rank.id, std::move(pending));
  }
}

bool Delivery::copy_is_missing(const PendingEvent& pending) const {
  if (pending.copy_number == 0) return false;
  const Rank& copier = ranks_[pending.copier.value];
  const std::uint64_t counted = copier.page->copies_done.load(std::memory_order_seq_cst);
  return !copier.events.copies.is_made(pending.copy_number, counted) && copier.state != RankState::gone;
}

bool Delivery::copy_for(Rank& copier, std::uint64_t number) {
  if (!takes_nothing(copier)) return false;
  auto& overflow = copier.events.overflow;
  const auto order = std::find_if(overflow.begin(), overflow.end(),
                                  [number](const PendingEvent& each) { return each.copy_order == number; });
  if (order == overflow.end()) return false;  // it is in the ring, and the rank copies when it is nudged
  wire::Event& event = order->event;
  const int error =
      copy_between(event.source_pid, event.source_buffer, copier.process.pid, event.buffer, event.place_length);
  if (error != 0 && event.error == 0) event.error = error;
  event.flags &= ~wire::event_flag::payload_memory;
  copier.events.copies.take_over(number);
  return true;
}

bool Delivery::waits_for_copy(Rank& rank, std::uint64_t instant) {
  if (rank.events.overflow.empty() || rank.events.overflow.front().event.at_ps > instant) return false;
  // Asked before the attempt: a copy that comes in between makes it succeed, and must not pass for a full ring.
  const bool missing = copy_is_missing(rank.events.overflow.front());
  return !flush(rank) && missing;
}

bool Delivery::flush(Rank& rank) {
  if (!rank.news.empty()) show_news(rank);
  bool moved = false;
  while (!rank.events.overflow.empty()) {
    const PendingEvent& front = rank.events.overflow.front();
    if (front.copy_number != 0) {
      Rank& copier = ranks_[front.copier.value];
      const std::uint64_t count = copier.events.copies.count_at(front.copy_number);
      copier.page->notify_copies.store(count, std::memory_order_seq_cst);
      if (copy_is_missing(front) && !copy_for(copier, front.copy_number)) {
        copier.events.copy_waiters.push_back(rank.id);
        nudge(*copier.page);
        break;
      }
    }
    if (!write_event(segment_, rank, front)) break;
    rank.events.overflow.pop_front();
    moved = true;
  }
  if (moved) shown(rank);
  return moved;
}

// There is an event in the rank's ring that was not there before.
void Delivery::shown(Rank& rank) {
  if (rank.state == RankState::away) wake_sleeper(rank);
  if (!rank.events.copy_waiters.empty()) nudge(*rank.page);  // a copy that somebody waits for may have come in reach
}

void Delivery::flush_waiters(Rank& copier) {
  for (const RankId waiter : std::exchange(copier.events.copy_waiters, {})) {
    if (flush(ranks_[waiter.value])) clock_.make_ready(ranks_[waiter.value]);
  }
}

void Delivery::forget(Rank& rank) {
  for (const PendingEvent& pending : rank.events.overflow) drop(pending);
  rank.events.overflow.clear();
  rank.news.clear();
}

void Delivery::drop(const PendingEvent& pending) {
  if ((pending.event.flags & wire::event_flag::payload_arena) == 0) return;
  wire::Arena::free(segment_.base(), pending.event.arena_offset);
}

}  // namespace dryfly
