// A message on its way from its send command to its completion, a receive that takes messages, and the table of all
// messages. The parts of core/nic that handle messages share these records; each says which fields it writes.
#pragma once

#include <cstdint>

#include "core/nic/nic.hpp"
#include "core/unit/pool.hpp"

namespace dryfly::nic {

inline constexpr std::uint32_t none = UINT32_MAX;

struct Message {
  SendCommand command;
  Protocol protocol = Protocol::eager;
  bool on_node = false;
  bool over = false;              // nothing follows but acknowledgements
  bool source_told = false;       // on-node: sent() has been reported
  bool holds_entry = false;       // an unexpected header on the hardware's list
  bool in_software = false;       // came by the request list
  bool onloaded = false;          // its header was taken to the host
  bool awaits_processor = false;  // a rendezvous request that the target's CPU has not seen yet
  bool unexpected = false;        // had to wait for its receive
  bool listed = false;            // among the unexpected ones, and counted there
  bool refused = false;           // dropped by a disabled portal
  bool under_way = false;         // its source does not know yet whether it was taken or refused:
  bool arrived = false;           // that is decided
  bool answered = false;          // and the answer is back
  bool paused = false;            // waits for a buffer of its target, or behind one that does
  bool foreign = false;           // its target is on another virtual network
  bool notifies_done = false;     // a rendezvous whose Get by software is a restricted one
  bool holds_credit = false;      // one of its target's Gets by software
  bool told_done = false;         // and the target's CPU has said that it is done
  std::uint32_t unacknowledged = 0;
  std::uint32_t switch_hops = 0;
  std::uint32_t receive = none;                           // once matched
  std::uint32_t life = 0;                                 // which message it is that has this place
  std::uint64_t number = 0;                               // in the order of sending
  TrafficClass answer_class = TrafficClass::best_effort;  // of its Get, and what that brings
  Bytes head;                                             // of a rendezvous: what travels with the request
  Bytes offset;                                           // in the buffer of that receive
};

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
  void fetch(std::uint32_t index) const { messages_.fetch(index); }
  std::size_t size() const { return messages_.size(); }
  std::size_t in_use() const { return messages_.in_use(); }
  void restart() { messages_.restart(); }
  // A number that tells what has a place now from what had it before; messages and peers share the count.
  std::uint32_t new_life() { return ++lives_; }

  // Nothing follows but acknowledgements; with the last of them the message leaves the table.
  void end(std::uint32_t index) {
    messages_[index].over = true;
    messages_[index].awaits_processor = false;
    retire_if_idle(index);
  }
  void retire_if_idle(std::uint32_t index) {
    if (messages_[index].over && messages_[index].unacknowledged == 0) messages_.release(index);
  }

 private:
  Pool<Message, 13> messages_;
  std::uint32_t lives_ = 0;
};

}  // namespace dryfly::nic
