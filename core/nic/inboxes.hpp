// What each end-point keeps of messages: its posted receives, its unexpected messages, its portal and the list entries
// that these use up. Owns the receives and the pools of list entries.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/nic/matching.hpp"
#include "core/nic/message.hpp"
#include "core/nic/nic.hpp"
#include "core/nic/portal.hpp"
#include "core/nic/transport.hpp"

namespace dryfly::nic {

struct Inbox {
  bool open = false;
  std::uint32_t life = 0;  // how many times it has been opened
  NicId nic;
  Portal portal;
  std::uint32_t posted_entries = 0;
  std::uint32_t unexpected_entries = 0;
  std::uint32_t in_software = 0;  // unexpected ones of the request list
  PostedReceives posted;
  UnexpectedMessages unexpected;
  std::map<Token, std::uint32_t> claimed;
  std::deque<PeekCommand> waiting;  // peeks, in the order in which they are answered
};

class Inboxes {
 public:
  Inboxes(Transport& transport, Host& host, const NicSpec& spec, NicTotals& totals)
      : transport_(transport), host_(host), spec_(spec), totals_(totals) {}

  void open(EndpointId endpoint, NicId nic, const EndpointSettings& settings);
  void restart();

  Inbox& inbox(EndpointId endpoint) {
    DRYFLY_CHECK(endpoint.value < inboxes_.size() && inboxes_[endpoint.value] != nullptr);
    return *inboxes_[endpoint.value];
  }
  // Null where the end-point was never opened.
  const Inbox* find(EndpointId endpoint) const {
    return endpoint.value < inboxes_.size() ? inboxes_[endpoint.value].get() : nullptr;
  }
  Receive& receive(std::uint32_t index) { return receives_[index]; }
  const Receive& receive(std::uint32_t index) const { return receives_[index]; }
  std::uint32_t new_receive(const ReceiveCommand& command, const Inbox& at);

  // Takes a list entry for a posted receive, if it needs one and there is one.
  void append(Inbox& at, std::uint32_t receive);
  void unpost(Inbox& at, std::uint32_t receive);
  // One message less in progress; true when this was the last one that a multi-receive buffer takes.
  bool settle(std::uint32_t receive);
  // The message waits no longer, in whatever list: the entry of an unexpected header is free.
  void leave_list(Message& message);
  void note_list_entries(Inbox& at);
  // Whether the end-point that posted the message's receive is still there.
  bool hears_of(const Message& message);

  void ask_processor(EndpointId endpoint, const Work& work) { host_.needs_processor(endpoint, work); }
  // Asks for all that the end-point's portal wants done.
  void ask_processor(EndpointId endpoint);

 private:
  Transport& transport_;
  Host& host_;
  const NicSpec& spec_;
  NicTotals& totals_;
  std::vector<std::unique_ptr<Inbox>> inboxes_;                         // by end-point
  std::map<std::pair<std::uint32_t, std::uint32_t>, EntryPool> pools_;  // by NIC and engine
  Pool<Receive, 13> receives_;
};

}  // namespace dryfly::nic
