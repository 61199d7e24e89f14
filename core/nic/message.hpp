// A message on its way from its send command to its completion, a receive that takes messages, and the table of all
// messages. The parts of core/nic that handle messages share these records; states.hpp has the states of a message.
#pragma once

#include <cstdint>

#include "core/nic/nic.hpp"
#include "core/nic/states.hpp"
#include "core/unit/pool.hpp"

namespace dryfly::nic {

inline constexpr std::uint32_t none = UINT32_MAX;

// Where the header of a message is that its target's NIC has taken.
enum class HeaderAt : std::uint8_t {
  nowhere,       // matched on arrival, or by now; or it came by the node's memory
  entry,         // it has a list entry of the hardware
  host,          // it had one, until it was onloaded
  request_list,  // software matches it, and did from the start
};

struct Message {
  SendCommand command;
  Protocol protocol = Protocol::eager;
  StateMachine<MessageState, message_states> state;
  StateMachine<SourceState, source_states> at_source;
  HeaderAt header = HeaderAt::nowhere;
  // Four facts.
  bool by_memory = false;
  bool foreign = false;                                   // its target is on another virtual network
  bool notifies_done = false;                             // a rendezvous whose Get by software is a restricted one
  bool came_unexpected = false;                           // it had to wait for its receive
  TrafficClass answer_class = TrafficClass::best_effort;  // of its Get, and what that brings
  std::uint8_t target_gpu = 0;                            // in whose memory its receive's buffer is, once matched
  std::uint32_t unacknowledged = 0;
  std::uint32_t switch_hops = 0;
  std::uint32_t receive = none;  // once matched
  std::uint32_t life = 0;        // which message it is that has this place
  std::uint64_t number = 0;      // in the order of sending
  Bytes head;                    // of a rendezvous: what travels with the request
  Bytes offset;                  // in the buffer of that receive

  bool rendezvous() const { return protocol == Protocol::rendezvous; }
  bool in_software() const { return header == HeaderAt::request_list; }
  bool matched_by_software() const { return in_software() || header == HeaderAt::host; }

  // What came with its request was put into an overflow or request buffer of the provider's.
  bool lay_in_buffer() const { return !by_memory && (came_unexpected || in_software()); }

  // Its target's NIC has decided what becomes of it.
  bool decided() const { return !state.is_one_of(any_of(MessageState::coming, MessageState::paused)); }
  bool is_unexpected() const {
    return state.is_one_of(any_of(MessageState::unexpected, MessageState::unexpected_asked));
  }
  bool awaits_processor() const {
    return state.is_one_of(
        any_of(MessageState::unexpected_asked, MessageState::asked, MessageState::granted, MessageState::telling));
  }
  // One of those that limit how many Gets by software its target has under way.
  bool holds_credit() const {
    return state.is_one_of(
        any_of(MessageState::granted, MessageState::getting_by_software, MessageState::telling, MessageState::told));
  }

  bool source_told() const { return at_source.is_one_of(any_of(SourceState::told_early, SourceState::told)); }
  bool answered() const { return !by_memory && at_source.is_one_of(any_of(SourceState::answered, SourceState::told)); }
  // Sent, and what has become of it is not both decided and known at its source.
  bool under_way() const {
    return at_source.is_one_of(any_of(SourceState::sent, SourceState::told_early)) || (answered() && !decided());
  }
  void note_sent() {
    at_source.move_to(by_memory ? SourceState::in_memory : source_told() ? SourceState::told_early : SourceState::sent);
  }
  void note_answered() { at_source.move_to(source_told() ? SourceState::told : SourceState::answered); }
  void note_told() { at_source.move_to(at_source == SourceState::sent ? SourceState::told_early : SourceState::told); }
  // False: the host knows already how the send ended.
  bool note_told_once() {
    if (source_told()) return false;
    note_told();
    return true;
  }
};
static_assert(sizeof(Message) <= 112);  // there are as many as there are unexpected messages

// A posted receive, or one that has matched and whose messages are still being placed.
struct Receive {
  ReceiveCommand command;
  std::uint32_t life = 0;  // of the end-point, when it was posted
  std::uint32_t slot = none;
  std::uint32_t in_progress = 0;
  Bytes used;
  bool posted = false;
  bool matched = false;
  bool holds_entry = false;  // is on the hardware's list
  bool waits = false;        // could not be appended to it yet
};

// All messages that are not finished.
class MessageTable {
 public:
  std::uint32_t acquire() { return messages_.acquire(); }
  Message& operator[](std::uint32_t index) { return messages_[index]; }
  const Message& operator[](std::uint32_t index) const { return messages_[index]; }
  void prefetch(std::uint32_t index) const { messages_.prefetch(index); }
  std::size_t size() const { return messages_.size(); }
  std::size_t in_use() const { return messages_.in_use(); }
  void restart() { messages_.restart(); }
  // A number that tells what has a place now from what had it before; messages and peers share the count.
  std::uint32_t new_life() { return ++lives_; }

  // Nothing follows but acknowledgements; with the last of them the message leaves the table.
  void end(std::uint32_t index) {
    messages_[index].state.move_to(MessageState::over);
    retire_if_idle(index);
  }
  void retire_if_idle(std::uint32_t index) {
    if (messages_[index].state == MessageState::over && messages_[index].unacknowledged == 0) messages_.release(index);
  }
  void expect_acknowledgement(std::uint32_t index) { ++messages_[index].unacknowledged; }
  void acknowledge(std::uint32_t index) {
    DRYFLY_CHECK(messages_[index].unacknowledged > 0);
    --messages_[index].unacknowledged;
  }

 private:
  Pool<Message, 13> messages_;
  std::uint32_t lives_ = 0;
};

}  // namespace dryfly::nic
