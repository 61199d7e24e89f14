#include "rank/channel.hpp"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <utility>

#include "wire/futex.hpp"

namespace dryfly::wire {

namespace {

// Polls that find nothing before each event in a blocking call. A lock of a window of one's own takes two turns of the
// library, which talks to itself for it.
constexpr std::uint32_t turns_before_event = 8;
// A test loop that has found nothing this often in a row is treated as waiting in small steps.
constexpr std::uint32_t polls_before_stepping = 64;
constexpr std::uint64_t step_ps_max = 1'000'000;     // 1 us of virtual time
constexpr std::uint64_t threaded_step_ps = 100'000;  // doubled with each step, so that a long wait takes few
constexpr std::uint32_t threaded_doublings = 17;     // up to 13 ms

constexpr std::uint64_t read_max_bytes = 16 * 1024;  // above, the copy costs more than the fault

constexpr int spin_steps = 200;
constexpr std::uint32_t spinners_max = 2;
constexpr long nap_ns = 200'000'000;

}  // namespace

void Channel::leave_if_job_is_over() {
  pollfd watched{socket_, POLLRDHUP, 0};
  const bool conductor_gone = ::poll(&watched, 1, 0) > 0;
  // The launcher says why the job ends; a rank that is still here only has to go.
  if (conductor_gone && served()) fprintf(stderr, "dryfly: the fabric is no longer served; this process ends\n");
  if (conductor_gone || header_->job_over.load(std::memory_order_relaxed) != 0) _exit(70);
}

void Channel::raise_attention() {
  header_->attention[rank_ / 64].fetch_or(std::uint64_t{1} << (rank_ % 64), std::memory_order_seq_cst);
  if (header_->conductor_asleep.load(std::memory_order_seq_cst) != 0) {
    header_->doorbell.fetch_add(1, std::memory_order_seq_cst);
    futex_wake(header_->doorbell);
  }
}

void Channel::publish() {
  const std::uint64_t at = now();
  // A rank that watches memory sees it as it was at its last gate: until the next one the network stays there.
  if (!watches_memory()) page_->clock_ps.store(at, std::memory_order_seq_cst);
  if (at >= page_->notify_at_ps.load(std::memory_order_seq_cst)) {
    page_->notify_at_ps.store(far_future, std::memory_order_relaxed);
    raise_attention();
  }
  // Outside virtual time nobody waits for this clock, and the rank may block elsewhere before its next poll.
  if (self_->call_mode.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(CallMode::outside)) {
    raise_attention();
  }
  // Let go between this call's beginning and now: what it has just pushed is to be taken all the same.
  if (page_->away.load(std::memory_order_seq_cst) != 0) raise_attention();
  serve();
}

void Channel::push(Command& command, const void* payload) {
  const std::uint32_t ring = header_->command_ring_bytes;
  std::uint32_t bytes = command_bytes;
  if ((command.flags & command_flag::payload_inline) != 0) bytes += static_cast<std::uint32_t>(command.length);
  bytes = (bytes + record_granule - 1) / record_granule * record_granule;
  const std::uint64_t to_end = ring - command_head_ % ring;
  const std::uint64_t taken = page_->command_tail.load(std::memory_order_acquire);
  const bool rewinds = taken == command_head_ && ring - to_end >= ring_rewind_bytes;
  const bool wraps = bytes > to_end || rewinds;
  if (command_head_ + (wraps ? bytes + to_end : bytes) - taken > ring) request(GateKind::drain, 0);
  if (wraps) {
    *reinterpret_cast<std::uint32_t*>(command_ring_ + command_head_ % ring) = wrap_record;
    command_head_ += to_end;
  }
  command.record_bytes = bytes;
  command.at_ps = now();
  char* record = command_ring_ + command_head_ % ring;
  memcpy(record, &command, sizeof command);
  const bool brings_bytes = (command.flags & command_flag::payload_inline) != 0 && command.length > 0;
  if (brings_bytes) memcpy(record + command_bytes, payload, command.length);
  command_head_ += bytes;
  page_->command_head.store(command_head_, std::memory_order_release);
  empty_polls_ = 0;
  turns_taken_ = 0;
  self_->has_acted.store(1, std::memory_order_relaxed);
  publish();
  // Its owner tells others of the end-point by means outside virtual time: it must be there when this returns.
  if (command.kind == CommandKind::open_endpoint) request(GateKind::drain, 0);
}

bool Channel::push_with_payload(Command& command, const void* payload, std::uint64_t length, bool stable) {
  command.length = length;
  command.flags &= ~(command_flag::payload_inline | command_flag::payload_arena | command_flag::payload_memory);
  if (length <= header_->inline_max) {
    command.flags |= command_flag::payload_inline;
  } else if (length <= header_->eager_max || length <= staged_max_ || !stable || header_->cross_memory_allowed == 0) {
    const std::uint64_t offset = arena_.allocate(length);
    if (offset == 0) return false;
    memcpy(base_ + offset, payload, length);
    command.arena_offset = offset;
    command.flags |= command_flag::payload_arena;
  } else {
    command.buffer = reinterpret_cast<std::uint64_t>(payload);
    command.flags |= command_flag::payload_memory;
  }
  push(command, payload);
  return true;
}

const Event* Channel::head() {
  const std::uint32_t ring = header_->event_ring_bytes;
  if (event_tail_ == page_->event_head.load(std::memory_order_acquire)) return nullptr;
  const auto* event = reinterpret_cast<const Event*>(event_ring_ + event_tail_ % ring);
  if (event->record_bytes == wrap_record) {
    event_tail_ += ring - event_tail_ % ring;
    event = reinterpret_cast<const Event*>(event_ring_);
  }
  return event;
}

const Event* Channel::peek() {
  const Event* event = head();
  return event != nullptr && event->at_ps <= now() ? event : nullptr;
}

const void* Channel::inline_payload(const Event& event) const {
  return reinterpret_cast<const char*>(&event) + event_bytes;
}

void Channel::pop() {
  const auto* event = reinterpret_cast<const Event*>(event_ring_ + event_tail_ % header_->event_ring_bytes);
  event_tail_ += event->record_bytes;
  page_->event_tail.store(event_tail_, std::memory_order_release);
  empty_polls_ = 0;
}

int Channel::place(const Event& event, void* to) {
  char* target = to != nullptr ? static_cast<char*>(to) : reinterpret_cast<char*>(event.buffer);
  const std::uint64_t length = event.place_length;
  if ((event.flags & event_flag::payload_inline) != 0) {
    if (length > 0) memcpy(target, inline_payload(event), length);
  } else if ((event.flags & event_flag::payload_arena) != 0) {
    if (length > 0) fetch(event.arena_offset, length, target);
    Arena::free(base_, event.arena_offset);
  } else if ((event.flags & event_flag::payload_memory) != 0) {
    return copy_from_sender(event, target);
  }
  return 0;
}

// To look at a part of the arena for the first time costs a fault, in which the kernel maps 64 KiB; who has one message
// from each of many senders would pay that for each. So the first payload from such a part is read from the segment's
// file, and only who comes back maps it, unless it has been mapped ahead.
void Channel::fetch(std::uint64_t offset, std::uint64_t length, char* target) {
  const auto part = static_cast<std::uint32_t>(offset / arena_part_bytes);
  std::uint32_t& visited = visited_parts_[part % arena_parts_known];
  if (offset >= header_->arena_offset + header_->arena_ahead_bytes && visited != part && length <= read_max_bytes) {
    visited = part;
    // The system call itself: pread may be the program's own, or one that keeps a log of its files.
    const int segment = segment_descriptor();
    if (segment >= 0 && syscall(SYS_pread64, segment, target, length, offset) == static_cast<long>(length)) return;
  }
  memcpy(target, base_ + offset, length);
}

int Channel::copy_from_sender(const Event& event, char* target) {
  int error = 0;
  const std::uint64_t length = event.place_length;
  if (event.source_pid == static_cast<std::uint32_t>(getpid())) {
    memmove(target, reinterpret_cast<const void*>(event.source_buffer), length);
  } else {
    std::uint64_t done = 0;
    while (done < length && error == 0) {
      iovec here{target + done, length - done};
      iovec there{reinterpret_cast<void*>(event.source_buffer + done), length - done};
      const ssize_t got = process_vm_readv(static_cast<pid_t>(event.source_pid), &here, 1, &there, 1, 0);
      if (got > 0) {
        done += static_cast<std::uint64_t>(got);
      } else {
        error = got < 0 ? errno : EFAULT;
      }
    }
  }
  const std::uint64_t copies = page_->copies_done.load(std::memory_order_relaxed) + 1;
  page_->copies_done.store(copies, std::memory_order_seq_cst);
  if (copies >= page_->notify_copies.load(std::memory_order_seq_cst)) {
    page_->notify_copies.store(far_future, std::memory_order_relaxed);
    raise_attention();
  }
  return error;
}

// A rank that waits at its gate copies what has arrived for it although its clock is not there yet: the sender's
// completion waits for the copy, and this rank's clock may in turn wait for the sender. The bytes go where a posted
// receive wants them, which the program must not look at before its completion.
void Channel::copy_early() {
  const std::uint32_t ring = header_->event_ring_bytes;
  const std::uint64_t end = page_->event_head.load(std::memory_order_acquire);
  for (std::uint64_t at = event_tail_; at != end;) {
    auto* event = reinterpret_cast<Event*>(event_ring_ + at % ring);
    if (event->record_bytes == wrap_record) {
      at += ring - at % ring;
      continue;
    }
    if (event->kind == EventKind::received && (event->flags & event_flag::payload_memory) != 0) {
      const int error = copy_from_sender(*event, reinterpret_cast<char*>(event->buffer));
      if (error != 0 && event->error == 0) event->error = error;
      event->flags &= ~event_flag::payload_memory;
    }
    at += event->record_bytes;
  }
}

void Channel::serve() {
  const std::uint32_t wanted = page_->service_request.load(std::memory_order_acquire);
  if (wanted == page_->service_done.load(std::memory_order_relaxed)) return;
  void* own = reinterpret_cast<void*>(page_->service_address);
  char* staged = base_ + page_->service_arena_offset;
  if (page_->service_is_write != 0) {
    memcpy(own, staged, page_->service_bytes);
  } else {
    memcpy(staged, own, page_->service_bytes);
  }
  page_->service_done.store(wanted, std::memory_order_release);
}

void Channel::request(GateKind kind, std::uint64_t deadline_ps) {
  // The conductor must have seen that a rank waits for changes of its memory before the network brings any.
  if (!watches_memory()) page_->clock_ps.store(now(), std::memory_order_relaxed);
  page_->gate_kind = kind;
  page_->gate_at_ps = now();
  page_->gate_deadline_ps = deadline_ps;
  page_->gate_has_acted = self_->has_acted.load(std::memory_order_relaxed);
  const std::uint32_t ticket = page_->gate_request.load(std::memory_order_relaxed) + 1;
  page_->gate_request.store(ticket, std::memory_order_seq_cst);
  raise_attention();

  // A short spin saves both futex calls where few ranks are in play; with many, each would only keep the processor
  // from one that has work.
  const auto is_release = [ticket](std::uint32_t word) { return word >> nudge_bits == (ticket & ticket_mask); };
  const auto released = [&] { return is_release(page_->released.load(std::memory_order_acquire)); };
  if (header_->spinning_ranks.fetch_add(1, std::memory_order_relaxed) < spinners_max) {
    spinner_.spin(spin_steps, released);
    sidestep_.after_spin(spinner_.in_company(), header_->conductor_processor.load(std::memory_order_relaxed));
  }
  header_->spinning_ranks.fetch_sub(1, std::memory_order_relaxed);
  if (!released()) {
    page_->asleep.store(1, std::memory_order_seq_cst);
    for (;;) {
      const std::uint32_t seen = page_->released.load(std::memory_order_seq_cst);
      if (is_release(seen)) break;
      serve();
      copy_early();
      futex_wait(page_->released, seen, patience_ns_ != 0 ? patience_ns_ : nap_ns);
      if (released()) break;
      leave_if_job_is_over();
      if (patience_ns_ != 0) {
        patience_ns_ = 0;
        page_->asleep.store(0, std::memory_order_relaxed);
        return request(GateKind::none, 0);  // takes the place of the one that lasts too long
      }
    }
    page_->asleep.store(0, std::memory_order_relaxed);
  }
  const std::uint64_t at_least = page_->release_clock_ps.load(std::memory_order_relaxed);
  if (at_least > now()) self_->now_ps.store(at_least, std::memory_order_relaxed);
  baton_ps_ = now();
}

bool Channel::jump_to_head() {
  const Event* event = head();
  if (event == nullptr) return false;
  const std::uint64_t at = now();
  if (event->at_ps > at) {
    self_->waited_ps.fetch_add(event->at_ps - at, std::memory_order_relaxed);
    self_->now_ps.store(event->at_ps, std::memory_order_relaxed);
    publish();
  }
  return true;
}

void Channel::settle() {
  renew_baton();  // with it, a rank must not wait for instants that its node has not reached
  // Events come in the order of their instants, so a later one at the head proves that nothing more is visible yet.
  // Changes of memory are no events, so there it proves nothing.
  const bool proven = head() != nullptr && !watches_memory();
  if (page_->horizon_ps.load(std::memory_order_acquire) >= now() || proven) return;
  // Several threads renew no baton, so what this one has may be for an instant long ago, and the node waits for it.
  if (header_->nodes_share_memory != 0 && self_->thread_multiple.load(std::memory_order_relaxed) != 0)
    give_baton_back();
  request(GateKind::poll, 0);
}

bool Channel::poll_exactly() {
  settle();
  if (peek() != nullptr) return true;
  charge(costs().poll_ps);
  return false;
}

bool Channel::wait_until(GateKind kind, std::uint64_t deadline_ps) {
  if (header_->nodes_share_memory != 0) return wait_with_node(kind, deadline_ps);
  if (head() == nullptr) request(kind, deadline_ps);
  const Event* event = head();
  // What was visible all along is found by the poll itself, whether or not it had reached the ring when we looked.
  if (event != nullptr && event->at_ps <= now()) return true;
  if (event == nullptr && kind == GateKind::wait) {
    turns_taken_ = 0;  // everything stands still, and each rank is given its turns again
    return false;
  }
  charge(costs().poll_ps);
  if (event != nullptr && event->at_ps <= deadline_ps) return jump_to_head();
  const std::uint64_t at = now();
  if (deadline_ps > at) {
    self_->waited_ps.fetch_add(deadline_ps - at, std::memory_order_relaxed);
    self_->now_ps.store(deadline_ps, std::memory_order_relaxed);
    publish();
  }
  return false;
}

// In MPI_Init and MPI_Finalize the library may poll for what is no event of ours. So the rank sleeps, but only for a
// while of wall time, longer each time nothing has come.
bool Channel::wait_outside() {
  if (jump_to_head()) return true;
  constexpr long first_sleep_ns = 50'000;
  constexpr std::uint32_t doublings = 8;
  patience_ns_ = first_sleep_ns << (empty_polls_ < doublings ? empty_polls_ : doublings);
  request(GateKind::wait, far_future);
  patience_ns_ = 0;
  return jump_to_head();
}

bool Channel::take_turn() {
  const auto mode = static_cast<CallMode>(self_->call_mode.load(std::memory_order_relaxed));
  const bool blocking = mode == CallMode::blocking || mode == CallMode::unmarked;
  if (!blocking || turns_taken_ >= turns_before_event) return false;
  ++turns_taken_;
  return true;
}

bool Channel::idle() {
  if (peek() != nullptr) return true;
  const auto mode = static_cast<CallMode>(self_->call_mode.load(std::memory_order_relaxed));
  ++empty_polls_;
  if (mode == CallMode::outside) return wait_outside();
  if (self_->thread_multiple.load(std::memory_order_relaxed) != 0) {
    // Another thread of this rank may be about to act: wait in growing steps, so that it gets its turn. What it does
    // then comes late by at most the time that this thread has waited already.
    sched_yield();
    const std::uint64_t calls = page_->call_count.load(std::memory_order_relaxed);
    if (std::exchange(calls_seen_, calls) != calls) empty_polls_ = 1;  // it has acted
    const std::uint32_t doublings = empty_polls_ < threaded_doublings ? empty_polls_ : threaded_doublings;
    return wait_until(GateKind::wait_until, now() + (threaded_step_ps << doublings));
  }
  if (served() && mode == CallMode::unmarked) return wait_until(GateKind::wait_until, now() + step_ps());
  if (mode == CallMode::testing) {
    if (empty_polls_ <= polls_before_stepping) return poll_exactly();
    return wait_until(GateKind::wait_until, now() + step_ps_max);
  }
  return wait_until(GateKind::wait, far_future);
}

bool Channel::idle_until(std::uint64_t deadline_ps) {
  if (peek() != nullptr) return true;
  if (deadline_ps <= now()) return poll_exactly();
  if (served()) deadline_ps = sooner(deadline_ps);
  return wait_until(GateKind::wait_until, deadline_ps);
}

void Channel::meet() {
  const std::uint64_t at = now();
  request(GateKind::meet, far_future);
  if (now() > at) self_->waited_ps.fetch_add(now() - at, std::memory_order_relaxed);
  publish();
}

int Channel::gate(GateKind kind) {
  if (kind == GateKind::baton_back) {
    give_baton_back();
    return 0;
  }
  if (kind == GateKind::end && head() != nullptr && header_->nodes_share_memory == 0) {
    jump_to_head();
    return 0;
  }
  if (kind == GateKind::meet) {
    meet();
    return 0;
  }
  if (kind == GateKind::start) {
    leave_common_pages();
    map_ahead();
  }
  request(kind, far_future);
  if (kind == GateKind::end) {
    if (page_->all_ended.load(std::memory_order_acquire) != 0) return 1;
    if (header_->nodes_share_memory == 0) jump_to_head();
  }
  if (kind == GateKind::start) {
    page_->clock_ps.store(now(), std::memory_order_seq_cst);
    share_common_pages();
  }
  return 0;
}

}  // namespace dryfly::wire
