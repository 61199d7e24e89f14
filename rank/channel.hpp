// The rank's side of the wire: the provider's only way to the simulator. One per process. Owns the attachment, the
// two rings, the payload arena, the virtual clock and the gate. Loaded into user programs: libc only.
// Calls are not thread-safe; the provider holds its one lock around them. In a THREAD_MULTIPLE process idle() never
// waits for long at a time, so that another thread gets its turn.
#pragma once

#include <cstdint>

#include "rank/common_table.hpp"
#include "rank/self.hpp"
#include "rank/sidestep.hpp"
#include "wire/arena.hpp"
#include "wire/spinner.hpp"
#include "wire/wire.hpp"

namespace dryfly::wire {

class Channel {
 public:
  // Attaches this process as rank `rank` (environment: DRYFLY_CHANNEL, and PMI_RANK or DRYFLY_RANK), or to a served
  // fabric as the next process of a node (DRYFLY_FABRIC, DRYFLY_NODE). Returns the one channel of the process, also on
  // later calls; nullptr when the environment names no run, when this process is a child of an attached one, or when
  // the conductor refused (the reason is on stderr).
  static Channel* attach();
  // The channel if already attached.
  static Channel* get();

  const Welcome& welcome() const { return welcome_; }
  const SegmentHeader& header() const { return *header_; }
  const HostCosts& costs() const { return header_->costs; }
  std::uint32_t rank() const { return rank_; }
  // Messages up to here are complete at their source before their target has copied them: they go by the arena.
  void stage_up_to(std::uint64_t bytes) {
    if (bytes > staged_max_) staged_max_ = bytes;
  }

  std::uint64_t now() const { return self_->now_ps.load(std::memory_order_relaxed); }
  // Moves the rank's clock forward by what a call costs.
  void charge(std::uint64_t ps) { self_->now_ps.store(now() + ps, std::memory_order_relaxed); }

  // Appends the command, stamped with now(), and publishes the clock. `payload` may be null; with
  // command_flag::payload_inline it is copied behind the record (length bytes). Waits when the ring is full.
  void push(Command& command, const void* payload);
  // Chooses how `length` bytes at `payload` travel (inline, arena, memory), copies them if need be, sets flags,
  // buffer and arena_offset of the command and pushes it. False when the arena is full: nothing was pushed, try
  // again after progress. `stable`: the caller keeps the buffer unchanged until completion (not inject).
  bool push_with_payload(Command& command, const void* payload, std::uint64_t length, bool stable);

  // The oldest event with at_ps <= now(), or nullptr. The pointer is valid until pop().
  const Event* peek();
  const void* inline_payload(const Event& event) const;
  void pop();
  // Copies the payload of an event to where it belongs (event.buffer, event.place_length bytes; or `to` if not
  // null), from the ring, the arena or the sender's memory, and releases the source. To be called once before pop()
  // for each event that carries a payload flag. Returns 0 or a positive errno.
  int place(const Event& event, void* to);

  // A poll has found nothing in the ring. Comes back when it is certain that nothing is visible at now(), which costs
  // one empty poll, or, where the call may wait (see CallMode), with the clock moved to the next event. True if an
  // event is now visible.
  bool idle();
  // As idle(), but waits until an event or until the clock has reached `deadline_ps` whatever the call mode. On a
  // served fabric it may come back sooner, with neither.
  bool idle_until(std::uint64_t deadline_ps);
  // Comes back when every event visible at now() is in the ring.
  void settle();
  // In a blocking MPI call each event, and each wait, is preceded by a few polls that find nothing and cost nothing:
  // the library has its own turns in between (schedules of nonblocking collectives, messages to itself), and what it
  // does in them must not depend on whether the simulator happens to be ahead. True: this poll is one of them.
  bool take_turn();
  // Where the ranks of a node talk through memory: before the library looks for events at an instant later than the one
  // at which this rank got its node's baton, the others of the node have their turns up to there.
  void renew_baton();
  // The library has taken an event: its turns before the next one begin.
  void begin_turns() { turns_taken_ = 0; }
  // On a served fabric the process may be outside virtual time; each call of the provider begins by coming back.
  // `alone`: no other thread was in the provider just now.
  void enter(bool alone) {
    if (!alone) crowded_ = true;
    if (page_ != nullptr && page_->away.load(std::memory_order_relaxed) != 0) gate(GateKind::inside);
  }
  bool served() const { return header_->served != 0; }
  // The process is about to sleep until wake_descriptor() can be read. False: something has come, look first.
  bool may_sleep();
  int wake_descriptor() const { return socket_; }
  // The call must come back with "nothing" rather than wait (MPI_Test and its like).
  bool must_not_wait() const {
    return self_->call_mode.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(CallMode::testing);
  }
  // The traffic class of a message with this tag: that of its communicator, if it has one, or `usual`.
  std::uint8_t class_of_tag(std::uint64_t tag, std::uint8_t usual) const {
    const auto of_tag = self_->class_of_tag.load(std::memory_order_acquire);
    return of_tag != nullptr ? of_tag(tag, usual) : usual;
  }
  void note_peek(std::uint64_t tag, std::uint64_t ignore) const {
    const auto note = self_->peeked.load(std::memory_order_acquire);
    if (note != nullptr) note(tag, ignore);
  }
  // The library has had the handle of one address written to this place.
  void address_inserted(const void* handle) { table_.inserted(handle); }
  void publish();
  int gate(GateKind kind);

 private:
  Channel() = default;
  bool connect(const char* name, std::uint32_t rank, std::uint32_t node);
  void join();
  const Event* head();
  bool jump_to_head();
  bool poll_exactly();
  bool wait_until(GateKind kind, std::uint64_t deadline_ps);
  bool wait_with_node(GateKind kind, std::uint64_t deadline_ps);
  void give_baton_back();
  void meet();
  bool wait_outside();
  std::uint64_t step_ps() const;
  std::uint64_t sooner(std::uint64_t deadline_ps);
  void request(GateKind kind, std::uint64_t deadline_ps);
  void raise_attention();
  // -1: the program has closed it since; another file may have its number.
  int segment_descriptor() const;
  void leave_common_pages();
  void share_common_pages();
  void map_ahead();
  void fetch(std::uint64_t offset, std::uint64_t length, char* target);
  int copy_from_sender(const Event& event, char* target);
  void copy_early();
  void serve();
  void leave_if_job_is_over();
  bool watches_memory() const { return self_->watches_memory.load(std::memory_order_relaxed) != 0; }

  Welcome welcome_{};
  std::uint32_t rank_ = 0;
  std::uint64_t staged_max_ = 0;
  int socket_ = -1;
  int segment_ = -1;  // what was its descriptor, see segment_descriptor()
  char* base_ = nullptr;
  SegmentHeader* header_ = nullptr;
  RankPage* page_ = nullptr;
  char* command_ring_ = nullptr;
  char* event_ring_ = nullptr;
  Self* self_ = nullptr;
  Self own_self_{};
  Arena arena_;
  CommonTable table_;
  Spinner spinner_{0};
  Sidestep sidestep_;
  std::uint64_t command_head_ = 0;
  std::uint64_t event_tail_ = 0;
  std::uint64_t baton_ps_ = 0;     // the clock when the last gate was passed
  long patience_ns_ = 0;           // wall time that the gate request under way may last; 0: any
  std::uint64_t calls_seen_ = 0;   // of all threads, when one of several last waited
  std::uint32_t turns_taken_ = 0;  // since the last event or command
  std::uint32_t empty_polls_ = 0;  // in a row, without an event or a command between
  static constexpr std::uint64_t arena_part_bytes = 64 * 1024;  // what the kernel maps at a fault
  static constexpr std::uint32_t arena_parts_known = 1024;
  std::uint32_t visited_parts_[arena_parts_known] = {};  // by number, the last of those that fall together
  bool crowded_ = false;                                 // several threads have met in the provider
};

}  // namespace dryfly::wire
