// The portal table entry of an end-point: who matches its messages, and what that may use up. Hardware matching
// takes one list entry of its matching engine for each posted receive, each unexpected header and each overflow or
// request buffer; a pool of the engine serves all end-points on it. What finds no entry, no buffer or no slot in the
// event queue disables the portal until its CPU has moved the unexpected headers to the host (onload) and the
// senders have told how much of theirs was dropped; in hybrid mode lack of entries hands matching over to software
// instead, once and for all. Models docs/model/flow-control.md#states-of-a-portal and
// docs/model/matching.md#list-entries; knows nothing of messages.
//
// Left out: entries of memory regions and reserved shares; the events of an onload, with which the CPU is assumed to
// keep up; the time that searching a list takes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>

#include "core/contract/host.hpp"
#include "core/unit/unit.hpp"

namespace dryfly {

struct MatchingTotals {
  // Flow control begun, by reason.
  std::uint64_t events_full = 0;
  std::uint64_t append_failed = 0;
  std::uint64_t no_overflow_buffer = 0;
  std::uint64_t request_full = 0;
  std::uint64_t unexpected_failed = 0;
  // Matching handed over to software, by reason.
  std::uint64_t software_by_append = 0;
  std::uint64_t software_by_unexpected = 0;
  std::uint64_t software_by_choice = 0;  // preemptive
  std::uint64_t headers_onloaded = 0;
  std::uint64_t messages_refused = 0;
  std::uint64_t messages_replayed = 0;
  std::uint64_t messages_paused = 0;   // lossless: times that one had to wait for a buffer
  std::uint64_t notices_repeated = 0;  // of flow control, because the other's event queue for them was full
  // Most at one time: on the lists of one end-point, and entries of one engine.
  std::uint64_t priority_list_max = 0;
  std::uint64_t overflow_list_max = 0;
  std::uint64_t request_list_max = 0;
  std::uint64_t engine_entries_max = 0;
};

namespace nic {

// The list entries of one matching engine.
class EntryPool {
 public:
  void open(std::uint32_t capacity) { capacity_ = capacity; }
  bool take() {
    if (in_use_ >= capacity_) return false;
    ++in_use_;
    return true;
  }
  void give_back() {
    DRYFLY_CHECK(in_use_ > 0);
    --in_use_;
  }
  std::uint32_t in_use() const { return in_use_; }
  std::uint32_t capacity() const { return capacity_; }

 private:
  std::uint32_t capacity_ = 0;
  std::uint32_t in_use_ = 0;
};

// Large buffers filled one behind the other, each one list entry. One that has no room for the largest message is
// unlinked; its owner posts another when its CPU gets to it.
class BufferList {
 public:
  void open(Bytes size, Bytes largest, std::uint32_t wanted) {
    *this = {};
    size_ = size;
    largest_ = largest;
    wanted_ = wanted;
  }
  bool empty() const { return posted_ == 0; }
  void restart() { left_ = size_; }
  // True: a buffer was unlinked by it.
  bool take(Bytes bytes);
  void replenish(EntryPool& pool);
  void remove_all(EntryPool& pool);

 private:
  Bytes size_;
  Bytes largest_;
  Bytes left_;  // in the one being filled
  std::uint32_t wanted_ = 0;
  std::uint32_t posted_ = 0;
};

class Portal {
 public:
  enum class State : std::uint8_t {
    enabled,      // the hardware matches
    disabled,     // drops everything until its CPU has onloaded
    draining,     // still drops everything: not all senders have told their drops
    to_software,  // what comes is for software, which has yet to onload
    software,
  };
  enum class Admission : std::uint8_t { refused, hardware, unexpected, software, paused };
  enum class Append : std::uint8_t { entry, waits, software };

  void open(const EndpointSettings& settings, Bytes eager_max, Bytes header, EntryPool& pool, MatchingTotals& totals);
  void close();

  // A message is there; `by_entry`: a receive on the hardware's list takes it. `unexpected`: it now holds an entry.
  Admission admit(bool by_entry, bool by_receive, Bytes bytes);
  Append append();
  // The entry of a receive or of an unexpected header is free again.
  void give_back() { pool_->give_back(); }
  // A completion of what the NIC had accepted: it has kept a slot for it.
  void event() { add_events(1); }
  void posted(std::size_t receives);
  void waiting(std::size_t unexpected);

  // The CPU has onloaded `headers`, whose entries are free. False: nothing is regained, the job cannot go on.
  bool onloaded(std::uint32_t headers);
  // Receives that found no entry before are appended now, one by one.
  bool append_again() { return pool_->take(); }
  void append_failed_again() { fails_again_ = true; }
  void dropped() { ++dropped_; }
  void drops_told(std::uint32_t count) { told_ += count; }
  // True once, when nothing keeps it disabled any longer: the senders can be told.
  bool enable();
  void drained(std::uint32_t events) { used_slots_ -= std::min(used_slots_, events); }
  void replenish();
  // What has happened before virtual time began leaves no trace in the queue and the buffers.
  void restart();

  State state() const { return state_; }
  bool in_software() const { return state_ == State::software || state_ == State::to_software; }
  // What the CPU has to be asked for; none: std::nullopt.
  std::optional<Work> next_work();

 private:
  bool refuses() const { return state_ == State::disabled || state_ == State::draining; }
  Admission refuse(std::uint64_t MatchingTotals::* reason, bool needs_entries);
  Admission without_buffer(std::uint64_t MatchingTotals::* reason);
  void begin_flow_control(std::uint64_t MatchingTotals::* reason, bool needs_entries);
  void hand_over(std::uint64_t MatchingTotals::* reason);
  void become_software();
  Admission admit_to_software(Bytes bytes);
  void fill(BufferList& buffers, Bytes bytes);
  void add_events(std::uint32_t events);
  void ask(WorkKind kind, std::uint32_t count = 0) { wanted_.push_back({.kind = kind, .count = count}); }

  EndpointSettings settings_;
  EntryPool* pool_ = nullptr;
  MatchingTotals* totals_ = nullptr;
  Bytes header_;
  State state_ = State::enabled;
  State resumes_as_ = State::enabled;
  bool needs_entries_ = false;  // flow control for lack of list entries: the onload must free some
  bool fails_again_ = false;
  bool overflowed_ = false;
  BufferList overflow_;
  BufferList requests_;
  std::uint32_t used_slots_ = 0;
  std::uint32_t unreported_ = 0;
  std::uint32_t report_every_ = 32;
  std::uint32_t appends_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t told_ = 0;
  std::deque<Work> wanted_;
};

}  // namespace nic

}  // namespace dryfly
