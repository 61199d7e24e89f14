// The rank's side of the wire: the provider's only way to the simulator. One per process. It joins parts that have one
// job each: the two rings, payloads, the gate at which the rank stops, the node's baton, and the policy of time
// (Polls). Loaded into user programs: libc only. Calls are not thread-safe; the provider holds its one lock around
// them. In a THREAD_MULTIPLE process a poll that finds nothing never waits for long at a time, so that another thread
// gets in.
#pragma once

#include <cstdint>

#include "rank/attachment.hpp"
#include "rank/attention.hpp"
#include "rank/baton.hpp"
#include "rank/command_ring.hpp"
#include "rank/event_ring.hpp"
#include "rank/gate.hpp"
#include "rank/payloads.hpp"
#include "rank/polls.hpp"
#include "rank/self.hpp"
#include "rank/start_memory.hpp"
#include "rank/streams.hpp"
#include "wire/wire.hpp"

namespace dryfly::rank {

class Channel {
 public:
  // Attaches this process to its run or to a served fabric (attachment.hpp). Returns the one channel of the process,
  // also on later calls; nullptr when the environment names no run, when this process is a child of an attached one, or
  // when the conductor refused.
  static Channel* attach();
  // The channel if already attached.
  static Channel* get();

  const wire::Welcome& welcome() const { return attachment_.welcome; }
  wire::SegmentHeader& header() const { return *attachment_.header; }
  std::uint32_t rank() const { return attachment_.welcome.rank; }
  // Can be read when an event is there, on a served fabric (see Polls::may_sleep).
  int wake_descriptor() const { return attachment_.socket; }

  // Of this rank.
  wire::RankPage& page() const { return *attachment_.page; }
  // Null in the calls that start and end MPI, which take no time and are counted nowhere.
  wire::RegistrationCounts* registered() const {
    return self_->mode() != CallMode::outside ? &attachment_.page->times.registered : nullptr;
  }

  std::uint64_t now() const { return self_->now(); }
  // Moves the rank's clock forward by what a call costs.
  void charge(std::uint64_t ps) {
    const std::uint64_t at = self_->now() + self_->duration_ps(ps);
    self_->pass_to(at);
    self_->set_clock(at);
  }

  // The rank has come to a boundary (rank/software.hpp), which charges what the MPI library did since the last one.
  // Software::block of the buffer that the MPI call names.
  std::uint32_t boundary(Boundary at, std::uint64_t bytes) {
    if (!self_->software.is_charged()) return 0;
    const std::uint64_t ps = self_->software.reach(at, bytes, self_->mode() != CallMode::testing);
    if (ps != 0) charge(ps);
    self_->software.leave(at, bytes);
    return self_->software.block.load(std::memory_order_relaxed);
  }
  // What a poll has found, for the interval that begins with it.
  // `block`: as Software::found_block.
  void found(Boundary what, std::uint64_t bytes, std::uint32_t block) {
    if (!self_->software.is_charged()) return;
    self_->software.leave(what, bytes);
    if (block != 0) self_->software.found_block.store(block, std::memory_order_relaxed);
    if (const auto tell = self_->software.found_something.load(std::memory_order_relaxed); tell != nullptr) tell();
  }

  // Appends the command, stamped with now(), and publishes the clock. `payload` may be null; with
  // command_flag::payload_inline it is copied behind the record (length bytes). Waits when the ring is full.
  void push(wire::Command& command, const void* payload);
  // Has Payloads choose how `length` bytes at `payload` travel, and pushes the command. False when the arena is full:
  // nothing was pushed, try again after progress. `stable`: the caller keeps the buffer unchanged until completion.
  bool push_with_payload(wire::Command& command, const void* payload, std::uint64_t length, bool stable);
  void stage_up_to(std::uint64_t bytes) { payloads_.stage_up_to(bytes); }

  // The oldest event with at_ps <= now(), or nullptr. The pointer is valid until pop().
  const wire::Event* peek();
  // As Payloads::place, before pop().
  int place(const wire::Event& event, void* to);
  void pop();

  Polls& polls() { return polls_; }
  // Where the ranks of a node talk through memory: see Baton.
  void renew_baton() { baton_.renew(); }
  // On a served fabric the process may be outside virtual time; each call of the provider begins by coming back.
  // `alone`: no other thread was in the provider just now.
  void enter(bool alone) {
    if (!alone) polls_.crowd();
    if (attachment_.page->away.load(std::memory_order_relaxed) != 0) gate(wire::GateKind::inside);
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
  void address_inserted(const void* handle) { start_memory_.address_inserted(handle); }

  void publish() { gate_.publish(); }
  // As Self::gate.
  int gate(wire::GateKind kind);
  // What the preload is to call for that, in the beginning the channel's own; and when the process is bound elsewhere.
  void call_by(int (*for_gate)(wire::GateKind), void (*when_moved)(const Self&)) {
    self_->gate = for_gate;
    self_->moved = when_moved;
  }

  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

 private:
  friend void push_for_stream(Channel& channel, wire::Command& command, std::uint64_t at_ps);
  friend void charge_look_at_buffer(Channel& channel, bool of_gpu, std::uint64_t bytes);

  // `shared`: the preload's, or null.
  Channel(const Attachment& attachment, Self* shared)
      : attachment_(attachment),
        self_(shared != nullptr ? shared : &own_self_),
        commands_(attachment_.page, attachment_.command_ring(), attachment_.header->command_ring_bytes),
        events_(attachment_.page, attachment_.event_ring(), attachment_.header->event_ring_bytes),
        payloads_(attachment_, {attachment_.header, rank()}),
        gate_(attachment_, {attachment_.header, rank()}, self_, events_, payloads_),
        baton_(attachment_, {attachment_.header, rank()}, self_, gate_),
        streams_(attachment_, self_, gate_),
        polls_(attachment_, self_, events_, gate_, baton_, streams_),
        start_memory_(attachment_, self_) {}
  // Tells the preload of it.
  void join();
  void start();
  int end();

  Attachment attachment_;
  Self own_self_{};
  Self* const self_;
  CommandRing commands_;
  EventRing events_;
  Payloads payloads_;
  Gate gate_;
  Baton baton_;
  Streams streams_;
  Polls polls_;
  StartMemory start_memory_;
};

// What a stream of the rank's GPU does at that instant, of which the process knows nothing: no poll of its own is due
// for it.
void push_for_stream(Channel& channel, wire::Command& command, std::uint64_t at_ps);

// An MPI library that is built for GPUs has asked whose the buffer of a message is; of none it does not ask.
inline void charge_look_at_buffer(Channel& channel, bool of_gpu, std::uint64_t bytes) {
  const wire::HostCosts& costs = channel.header().costs;
  const std::uint64_t ps = of_gpu ? costs.gpu_buffer_ps : costs.buffer_ps;
  Software& software = channel.self_->software;
  if (ps != 0 && bytes != 0 && software.is_charged()) channel.charge(software.look(bytes, ps));
}

}  // namespace dryfly::rank
